"""Normalisation, shortcut and neuron in one pass, against torch's modules one after the other.

Without a GPU, Triton's kernels are interpreted; those for CPUs run on any machine. The oracle is
torch's batch normalisation and the reference neuron in float64.
"""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import nn

from chess_snn.nets import NetConfig, build_network, measuring_spike_rate, net_config
from chess_snn.nets.cpu import norm_neuron_kernels
from chess_snn.nets.cpu.chain_cpu import spikes_and_most
from chess_snn.nets.cpu.neuron_cpu import squares_of
from chess_snn.nets.model import layers
from chess_snn.nets.model.integer_neuron import integer_spikes
from chess_snn.nets.model.neuron import surrogate_derivative

fused = pytest.importorskip(
    "chess_snn.nets.gpu.norm_neuron_triton", reason="triton is not installed"
)

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
SHAPES = [(3, 5, 3, 7), (2, 8, 8, 8), (19, 16, 4, 4), (1, 130, 3, 3)]
"""B, C, H, W: less than a tile of rows, several of them, and more than one of columns."""
NEURONS = {
    "1 tick": NetConfig(ticks=1), "2 ticks": NetConfig(ticks=2), "3 ticks": NetConfig(ticks=3),
    "4 ticks": NetConfig(ticks=4),
    "other constants": NetConfig(ticks=3, decay=0.3, threshold=0.7, surrogate_alpha=1.5),
    "integer": NetConfig(ticks=1, activation="ilif", levels=3),
}
CPU_SHAPES = [(19, 16, 4, 4), (3, 48, 5, 3)]
"""One vector of channels, in several blocks of squares, and several vectors."""
CPU_NEURONS = {
    "integer": NetConfig(ticks=1, activation="ilif", levels=3),
    "other threshold": NetConfig(ticks=1, activation="ilif", levels=8, threshold=0.7),
    "ReLU": NetConfig(ticks=1, activation="relu"),
}
IN_ALL_SHAPES = "3 ticks"
"""By default the others are compared in the first shape alone."""
TOLERANCE = {
    torch.float32: {"rtol": 1e-4, "atol": 5e-5},
    # The interpreter cuts what does not fit in bfloat16.
    torch.bfloat16: {"rtol": 0.02, "atol": 0.08},
}


@dataclass
class Layer:
    """One layer's inputs and weights, and the gradients that come back to it."""

    branch: torch.Tensor
    shortcut: torch.Tensor | None
    norm: nn.BatchNorm2d
    grad_current: torch.Tensor | None
    grad_spikes: torch.Tensor


def make_layer(shape, config, dtype, form, seed=0, device=DEVICE):
    """``form``: ``plain``, ``static`` (a branch of one tick), ``shortcut`` (moving) or ``first``.

    Of the last, the shortcut has one tick.
    """
    generator = torch.Generator().manual_seed(seed)

    def images(ticks):
        # Steps of 1/8 are exact in bfloat16.
        numbers = torch.randn(ticks, *shape, generator=generator).mul(8).round().div(8)
        numbers = numbers.flatten(0, 1).contiguous(memory_format=torch.channels_last)
        return numbers.unflatten(0, (ticks, -1)).to(device, dtype)

    channels = shape[1]
    norm = nn.BatchNorm2d(channels)
    with torch.no_grad():
        norm.weight.copy_(torch.rand(channels, generator=generator) + 0.5)
        norm.bias.copy_(torch.rand(channels, generator=generator))
    ticks = 1 if form == "static" else config.ticks
    branch = images(ticks) + 3  # far from 0, where a variance is easily lost
    shortcut = {"shortcut": config.ticks, "first": 1}.get(form)
    return Layer(
        branch, shortcut and images(shortcut), norm.to(device),
        None if form == "plain" else images(ticks), images(config.ticks),
    )


def reference(layer, config, spikes=None):
    """Outputs, gradients and statistics in float64, one module after the other.

    Where ``spikes`` are given, neurons fire and are reset as in these.
    """
    norm = nn.BatchNorm2d(layer.norm.num_features).to(layer.branch.device, torch.float64)
    norm.load_state_dict(layer.norm.state_dict())
    # All in one layout: of mixed ones torch 2.13 on the CPU gives, for one image, other gradients
    # than the formula written out.
    branch = layer.branch.double().contiguous().requires_grad_()
    current = norm(branch.flatten(0, 1)).unflatten(0, branch.shape[:2])
    shortcut = None
    if layer.shortcut is not None:
        shortcut = layer.shortcut.double().contiguous().requires_grad_()
        current = shortcut + current
    if config.activation == "ilif":
        fired = integer_spikes(current.float(), config.threshold, config.levels).double()
        charges = current
    elif config.activation == "relu":
        fired, charges = current.relu(), current
    else:
        fired, charges = fire(current.expand(config.ticks, *current.shape[1:]), config, spikes)
    outputs, grads = [fired], [layer.grad_spikes.double().contiguous()]
    if layer.grad_current is not None:
        outputs.append(current)
        grads.append(layer.grad_current.double().contiguous())
    torch.autograd.backward(outputs, grads)
    found = {
        "branch": branch.grad, "weight": norm.weight.grad, "bias": norm.bias.grad,
        "mean": norm.running_mean, "variance": norm.running_var,
        "batches": norm.num_batches_tracked,
        "current": None if layer.grad_current is None else current.detach(),
        "shortcut": None if shortcut is None else shortcut.grad,
    }
    return fired.detach(), charges.detach(), found


class Spike(torch.autograd.Function):
    """A step whose derivative is the surrogate's, for autograd to go through time by itself."""

    @staticmethod
    def forward(ctx, charge, threshold, alpha, fired):
        ctx.save_for_backward(charge)
        ctx.constants = threshold, alpha
        return (charge >= threshold).double() if fired is None else fired.double()

    @staticmethod
    def backward(ctx, grad):
        threshold, alpha = ctx.constants
        (charge,) = ctx.saved_tensors
        return surrogate_derivative(charge - threshold, alpha) * grad, None, None, None


def fire(current, config, spikes=None):
    membrane, fired, charges = torch.zeros_like(current[0]), [], []
    for tick in range(config.ticks):
        charge = config.decay * membrane + current[tick]
        given = None if spikes is None else spikes[tick]
        spike = Spike.apply(charge, config.threshold, config.surrogate_alpha, given)
        membrane = charge * (1 - spike.detach())
        fired.append(spike)
        charges.append(charge)
    return torch.stack(fired), torch.stack(charges)


def run_fused(layer, config, passes=fused):
    """The same of the kernels, in their precision."""
    branch = layer.branch.clone().requires_grad_()
    shortcut = None if layer.shortcut is None else layer.shortcut.clone().requires_grad_()
    if layer.grad_current is None:
        current, spikes = None, passes.fire(branch, layer.norm, config)
        spikes.backward(layer.grad_spikes)
    else:
        current, spikes = passes.carry_and_fire(branch, layer.norm, config, shortcut)
        torch.autograd.backward([current, spikes], [layer.grad_current, layer.grad_spikes])
        current = current.detach()
    norm = layer.norm
    return spikes.detach(), {
        "branch": branch.grad, "weight": norm.weight.grad, "bias": norm.bias.grad,
        "mean": norm.running_mean, "variance": norm.running_var,
        "batches": norm.num_batches_tracked, "current": current,
        "shortcut": None if shortcut is None else shortcut.grad,
    }


def assert_close(found, expected, dtype):
    for name, tensor in expected.items():
        if tensor is None:
            assert found[name] is None, name
            continue
        ours = found[name].to(tensor.dtype)
        assert ours.shape == tensor.shape, name
        tolerance = TOLERANCE[dtype]
        if name in {"weight", "bias"}:  # sums of many: against the largest
            tolerance = {"rtol": 0, "atol": tolerance["rtol"] * tensor.abs().max().item()}
        torch.testing.assert_close(
            ours, tensor, **tolerance, msg=lambda text, name=name: f"{name}: {text}"
        )


@pytest.fixture(autouse=True)
def _poison(monkeypatch):
    """Fresh memory is full of NaN, so that a number left unwritten cannot look right."""
    real_like, real_new = torch.empty_like, torch.Tensor.new_empty
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: real_like(*a, **k).fill_(torch.nan))
    monkeypatch.setattr(
        torch.Tensor, "new_empty", lambda *a, **k: real_new(*a, **k).fill_(torch.nan)
    )


BFLOAT16 = pytest.param(torch.bfloat16, marks=pytest.mark.slow)
EVERY_DTYPE = pytest.mark.parametrize("dtype", [torch.float32, BFLOAT16], ids=str)
EVERY_FORM = pytest.mark.parametrize("form", ["plain", "static", "shortcut", "first"])


@EVERY_DTYPE
@EVERY_FORM
@pytest.mark.parametrize("neurons", [
    pytest.param(name, marks=[pytest.mark.slow] * name.endswith(("1 tick", "2 ticks", "4 ticks")))
    for name in NEURONS
])
def test_outputs_statistics_and_gradients_are_those_of_torch_in_float64(neurons, form, dtype):
    config = NEURONS[neurons]
    check(config, form, dtype, SHAPES if neurons == IN_ALL_SHAPES else SHAPES[:1])


@pytest.mark.slow
@EVERY_DTYPE
@EVERY_FORM
@pytest.mark.parametrize("neurons", [name for name in NEURONS if name != IN_ALL_SHAPES])
def test_so_they_are_in_all_shapes(neurons, form, dtype):
    config = NEURONS[neurons]
    check(config, form, dtype, SHAPES[1:])


def check(config, form, dtype, shapes):
    if config.activation == "ilif" and dtype is torch.bfloat16:
        pytest.skip("rounding moves currents over the edges of a gradient that is a rectangle")
    for shape in shapes:
        layer = make_layer(shape, config, dtype, form)
        _, charges, _ = reference(layer, config)
        spikes, found = run_fused(layer, config)
        layer = make_layer(shape, config, dtype, form)
        expected_spikes, _, expected = reference(
            layer, config, None if config.activation == "ilif" else spikes
        )
        assert_close(found, expected, dtype)
        if config.activation == "lif":  # the reference fired as the kernels did: were they right?
            expected_spikes = (charges >= config.threshold).double()
        differs = spikes.double() != expected_spikes
        assert differs.float().mean() < (0.001 if dtype is torch.float32 else 0.1)
        assert spikes.float().mean() > 0.05
        assert (spikes != 0).float().mean() < 0.95


def test_spikes_and_gradients_do_not_depend_on_the_memory_layout():
    config = NetConfig(ticks=3)
    layer = make_layer((2, 5, 8, 8), config, torch.float32, "shortcut")
    spikes, found = run_fused(layer, config)
    assert spikes.flatten(0, 1).is_contiguous(memory_format=torch.channels_last)
    other = make_layer((2, 5, 8, 8), config, torch.float32, "shortcut")
    for name in ("branch", "shortcut", "grad_current", "grad_spikes"):
        setattr(other, name, getattr(other, name).contiguous())
    other_spikes, others = run_fused(other, config)
    assert torch.equal(spikes, other_spikes)
    for name, tensor in found.items():
        torch.testing.assert_close(others[name], tensor)


def test_many_rows_are_summed_by_programs_that_take_several_tiles(monkeypatch):
    config = NetConfig(ticks=2)
    layer = make_layer((7, 6, 8, 8), config, torch.float32, "shortcut")
    _, expected = run_fused(layer, config)
    monkeypatch.setattr(fused, "_MOST_PROGRAMS", 2)
    monkeypatch.setattr(fused, "_MOMENT_ROWS", 1)
    again = make_layer((7, 6, 8, 8), config, torch.float32, "shortcut")
    _, found = run_fused(again, config)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor)


def test_a_gradient_of_spikes_that_is_the_same_in_all_ticks_is_taken():
    """Gradient as the mean over ticks gives it: an expanded view."""
    config = NetConfig(ticks=4)
    layer = make_layer((2, 5, 3, 3), config, torch.float32, "plain")
    layer.grad_spikes = layer.grad_spikes[:1].expand_as(layer.grad_spikes)
    spikes, found = run_fused(layer, config)
    _, _, expected = reference(
        make_layer((2, 5, 3, 3), config, torch.float32, "plain"), config, spikes
    )
    assert not torch.allclose(found["branch"].double(), expected["branch"])
    again = make_layer((2, 5, 3, 3), config, torch.float32, "plain")
    again.grad_spikes = layer.grad_spikes.contiguous()
    _, _, expected = reference(again, config, spikes)
    assert_close(found, expected, torch.float32)


@pytest.mark.parametrize("overrides", [{"ticks": 3}, {"activation": "ilif", "ticks": 1}])
def test_a_network_learns_the_same_by_fused_passes(spec, positions, monkeypatch, overrides):
    config = net_config("tiny", blocks=2, channels=8, value_channels=2, value_hidden=8, **overrides)
    planes, found = positions[:3].tensor().to(DEVICE), []
    for is_fused in (False, True):
        monkeypatch.setattr(layers, "is_fused_on", lambda _device, is_fused=is_fused: is_fused)
        network = build_network(spec, config, 0).to(DEVICE, memory_format=torch.channels_last)
        with measuring_spike_rate(network) as rate:
            output = network(planes)
        loss = output.policy_logits_BA.square().mean() + output.value_logits_BV.square().sum()
        (loss + rate()).backward()
        found.append({
            **{name: tensor.grad for name, tensor in network.named_parameters()
               if tensor.grad is not None},
            **dict(network.named_buffers()), "rate": rate().detach(),
        })
    expected, ours = found
    assert ours.keys() == expected.keys()
    for name, tensor in expected.items():
        scale = tensor.abs().max().item()
        torch.testing.assert_close(ours[name], tensor, rtol=0, atol=2e-3 * scale + 1e-7)


def run_on_cpu(layer, config):
    """The same of the kernels for CPUs."""
    norm, neurons = layer.norm, spikes_and_most(config)
    weight, bias = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    branch = squares_of(layer.branch[0])
    shortcut = None if layer.shortcut is None else squares_of(layer.shortcut[0])
    moments = np.full((2, len(weight)), np.nan, np.float32)
    current, spikes, grad_sum, grad_branch = (np.full_like(branch, 2**16 - 1) for _ in range(4))
    norm_neuron_kernels.normalise_and_fire(
        branch, shortcut, weight, bias, norm.eps, *neurons, moments, current, spikes
    )
    of_norm = np.full_like(moments, np.nan)
    norm_neuron_kernels.go_backward(
        squares_of(layer.grad_spikes[0]),
        None if layer.grad_current is None else squares_of(layer.grad_current[0]),
        branch, current, weight, moments, norm.eps, *neurons, grad_sum, grad_branch, of_norm,
    )
    norm_neuron_kernels.follow(
        moments, branch.size // len(weight), norm.momentum, norm.running_mean.numpy(),
        norm.running_var.numpy(),
    )

    def image(squares):
        bits = torch.from_numpy(squares)
        bits = bits if bits.dtype is torch.float32 else bits.view(torch.bfloat16)
        return bits.permute(0, 3, 1, 2).unsqueeze(0)

    return image(spikes), {
        "branch": image(grad_branch), "weight": torch.from_numpy(of_norm[0]),
        "bias": torch.from_numpy(of_norm[1]), "mean": norm.running_mean,
        "variance": norm.running_var, "current": image(current),
        "shortcut": None if layer.shortcut is None else image(grad_sum),
    }


def cpu_and_reference(shape, config, dtype, form):
    """Results of the kernels for CPUs, and those expected."""
    ours = run_on_cpu(make_layer(shape, config, dtype, form, device="cpu"), config)
    layer = make_layer(shape, config, dtype, form, device="cpu")
    spikes, charges, expected = reference(layer, config)
    del expected["batches"]
    expected["current"] = charges
    return *ours, spikes, expected


@pytest.mark.parametrize("neurons", CPU_NEURONS)
@pytest.mark.parametrize("form", ["plain", "static", "shortcut"])
def test_kernels_for_cpus_are_torchs_modules_in_float64(neurons, form):
    for shape in CPU_SHAPES:
        spikes, found, expected_spikes, expected = cpu_and_reference(
            shape, CPU_NEURONS[neurons], torch.float32, form
        )
        assert_close(found, expected, torch.float32)
        differs = (spikes - expected_spikes).abs() > 1e-4
        assert differs.float().mean() < 0.001


@pytest.mark.parametrize("form", ["plain", "static", "shortcut"])
def test_in_bfloat16_they_are_as_near_as_it_is_exact(form):
    for shape in CPU_SHAPES:
        _, found, _, expected = cpu_and_reference(
            shape, CPU_NEURONS["ReLU"], torch.bfloat16, form
        )
        for name in ("branch", "shortcut", "weight", "bias"):
            # Rounding moves currents over the edge of ReLU.
            gradient = expected.pop(name)
            if gradient is not None:
                rest = found[name].double() - gradient
                assert rest.square().mean() < 5e-3 * gradient.square().mean(), name
        assert_close(found, expected, torch.bfloat16)


@pytest.mark.parametrize("neurons", ["integer", "other threshold"])
def test_neurons_fire_at_the_current_that_is_carried_on(neurons):
    config = CPU_NEURONS[neurons]
    layer = make_layer((19, 16, 4, 4), config, torch.bfloat16, "shortcut", device="cpu")
    spikes, found = run_on_cpu(layer, config)
    assert torch.equal(spikes, integer_spikes(found["current"], config.threshold, config.levels))
    assert spikes.unique().tolist() == list(range(config.levels + 1))
