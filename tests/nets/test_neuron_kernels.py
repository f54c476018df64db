"""The neuron as kernels, numba on the CPU and Triton on a GPU, against the reference bit for bit.

Without a GPU, Triton's kernels are interpreted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.nets import build_network, freeze, net_config
from chess_snn.nets.cpu.neuron_cpu import lif_cpu, memory_of
from chess_snn.nets.inference_neurons import CompiledNeurons, InferenceNeurons
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.neuron import lif

ON_GPU = torch.cuda.is_available()
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
TICKS = pytest.mark.parametrize("ticks", [
    1, pytest.param(2, marks=pytest.mark.slow), 3, pytest.param(4, marks=pytest.mark.slow),
    pytest.param(8, marks=pytest.mark.slow),
])
FORMATS = pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])


@dataclass(frozen=True)
class Kernels:
    """One implementation."""

    lif: Callable[..., torch.Tensor]
    neurons: type
    device: str
    sizes: tuple[int, ...]
    """Around a block of 1024 neurons and around a vector of 16, odd numbers included."""
    constants: tuple[tuple[float, float], ...]
    """Decay and threshold."""

    @property
    def is_interpreted(self) -> bool:
        return self.neurons is not CompiledNeurons and not ON_GPU

    def currents(self, ticks, size, dtype, seed=0):
        generator = torch.Generator().manual_seed(seed + 100 * ticks + size)
        values = torch.randn(ticks, size, generator=generator)
        values[:, ::5] = 0.5  # the threshold itself
        if self.is_interpreted:  # sums of these need no rounding, which it does otherwise
            values = values.mul(8).round().div(8)
        return values.to(self.device, dtype)

    def images(self, ticks, dtype, layout, seed=0):
        generator = torch.Generator().manual_seed(seed)
        folded = torch.randn(ticks * 3, 5, 8, 8, generator=generator).to(self.device, dtype)
        return folded.contiguous(memory_format=layout).unflatten(0, (ticks, 3))


NUMBA = Kernels(
    lif_cpu, CompiledNeurons, "cpu", (1, 7, 16, 33, 1023, 1024, 1025, 4099),
    ((0.5, 0.5), (0.3, 0.7)),
)


def triton() -> Kernels:
    neuron_triton = pytest.importorskip(
        "chess_snn.nets.gpu.neuron_triton",
        reason="triton is not installed: its kernels are not tested",
    )
    return Kernels(
        neuron_triton.lif_triton, neuron_triton.FusedNeurons, "cuda" if ON_GPU else "cpu",
        (1, 33, 1024, 1025, 2500), ((0.5, 0.5),),
    )


@pytest.fixture(params=["numba", "triton"])
def kernels(request):
    return NUMBA if request.param == "numba" else triton()


@pytest.fixture
def fused():
    return triton()


@pytest.fixture(autouse=True)
def _poison(monkeypatch):
    """Fresh memory is full of NaN, so that a number left unwritten cannot look right."""
    real_like = torch.empty_like
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: real_like(*a, **k).fill_(torch.nan))
    real_strided = torch.Tensor.new_empty_strided
    monkeypatch.setattr(
        torch.Tensor, "new_empty_strided", lambda *a, **k: real_strided(*a, **k).fill_(torch.nan)
    )


@DTYPES
@TICKS
def test_every_pass_equals_the_reference_bit_for_bit(kernels, dtype, ticks):
    for decay, threshold in kernels.constants:
        config = NetConfig(ticks=ticks, decay=decay, threshold=threshold)
        ours, reference = kernels.neurons(config), InferenceNeurons(config)
        for size in kernels.sizes:
            current = kernels.currents(ticks, size, dtype)
            shortcut = kernels.currents(ticks, size, dtype, seed=1)
            static = current[0].clone()
            assert torch.equal(
                ours.fire_static(static, ticks), reference.fire_static(static, ticks)
            )
            assert torch.equal(static, current[0])
            assert torch.equal(ours.fire(current.clone()), reference.fire(current.clone()))
            assert torch.equal(
                ours.mean_rate(current.clone()), reference.mean_rate(current.clone())
            )
            for carried in (shortcut, shortcut[:1]):
                total, spikes = ours.add_and_fire(carried.clone(), current.clone())
                total_expected, expected = reference.add_and_fire(carried, current.clone())
                assert torch.equal(total, total_expected)
                assert torch.equal(spikes, expected)


@TICKS
@DTYPES
def test_the_gradient_equals_the_references(kernels, dtype, ticks):
    # A fused multiplication and addition rounds once where two operations round twice.
    is_loose = dtype is torch.bfloat16 and kernels.is_interpreted
    tolerance = {"rtol": 0.03, "atol": 0.02} if is_loose else {}
    for size in kernels.sizes:
        current = kernels.currents(ticks, size, dtype)
        weights = kernels.currents(ticks, size, dtype, seed=3)
        gradients, spikes = [], []
        for neuron in (lif, kernels.lif):
            x = current.clone().requires_grad_()
            fired = neuron(x, 0.5, 0.5, 2.0)
            fired.backward(weights)
            gradients.append(x.grad)
            spikes.append(fired.detach())
        assert torch.equal(*spikes)
        if kernels is NUMBA:
            assert torch.equal(*gradients)
        torch.testing.assert_close(*gradients, **tolerance)


@FORMATS
def test_the_gradient_of_a_static_current_sums_over_its_ticks(kernels, layout):
    gradients = []
    for neuron in (lif, kernels.lif):
        x = kernels.images(1, torch.float32, layout)[0].requires_grad_()
        fired = neuron(x.expand(4, *x.shape), 0.5, 0.5)
        others = kernels.images(4, torch.float32, torch.contiguous_format, seed=2)
        (fired * others).sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
    assert gradients[0].abs().sum() > 0


@given(st.integers(1, 8), st.integers(1, 2100), st.integers(0, 2**31), st.booleans())
def test_any_shape_equals_the_reference(ticks, size, seed, is_bfloat16):
    dtype = torch.bfloat16 if is_bfloat16 else torch.float32
    current = 2 * torch.randn(ticks, size, generator=torch.Generator().manual_seed(seed)).to(dtype)
    assert torch.equal(lif_cpu(current, 0.5, 0.5), lif(current, 0.5, 0.5))


@DTYPES
def test_strange_numbers_fire_as_in_the_reference(kernels, dtype):
    rows = [float("inf"), float("-inf"), float("nan"), -0.0, 1e-40, 3e38, -3e38, 0.5]
    current = torch.tensor(rows, dtype=dtype, device=kernels.device).repeat(3, 1)
    assert torch.equal(kernels.lif(current, 0.5, 0.5), lif(current, 0.5, 0.5))


@DTYPES
def test_the_layout_is_kept(dtype):
    folded = torch.randn(6, 5, 8, 8).to(dtype).contiguous(memory_format=torch.channels_last)
    current = folded.unflatten(0, (3, 2))
    spikes = lif_cpu(current, 0.5, 0.5)
    assert spikes.stride() == current.stride()
    assert torch.equal(spikes, lif(current.contiguous(), 0.5, 0.5))


def test_memory_with_gaps_and_other_layouts_and_precisions_are_refused(kernels):
    with pytest.raises(ValueError, match="dense ticks"):
        kernels.lif(torch.zeros(2, 6, 4, device=kernels.device)[:, :, ::2], 0.5, 0.5)
    with pytest.raises(ValueError, match="dense ticks"):
        memory_of(torch.zeros(6, 2, 4).transpose(0, 1))
    with pytest.raises(TypeError, match="float64"):
        memory_of(torch.zeros(2, 3, dtype=torch.float64))
    branch = torch.zeros(2, 3, 4, 8, 8, device=kernels.device)
    with pytest.raises(ValueError, match="layout"):
        kernels.neurons(NetConfig()).add_and_fire(branch.transpose(3, 4), branch)


@FORMATS
@DTYPES
@pytest.mark.parametrize("ticks", [1, 4])
def test_the_bias_of_each_channel_is_added_first(fused, layout, dtype, ticks):
    config = NetConfig(ticks=ticks)
    ours, reference = fused.neurons(config), InferenceNeurons(config)
    # Steps of 1/8: sums with numbers of few digits are exact in both precisions.
    current, shortcut = (
        fused.images(ticks, dtype, layout, seed).mul(8).round_().div_(8) for seed in (0, 1)
    )
    bias = (torch.arange(5) - 2).div(8).to(fused.device, dtype)
    spikes = ours.fire(current.clone(), bias)
    assert spikes.stride() == current.stride()
    assert torch.equal(spikes, reference.fire(current.clone(), bias))
    assert not torch.equal(spikes, reference.fire(current.clone()))
    assert torch.equal(
        ours.mean_rate(current.clone(), bias), reference.mean_rate(current.clone(), bias)
    )
    for found, expected in zip(
        ours.add_and_fire(shortcut.clone(), current.clone(), bias),
        reference.add_and_fire(shortcut.clone(), current.clone(), bias),
        strict=True,
    ):
        assert torch.equal(found, expected)


@DTYPES
def test_a_network_with_fused_neurons_says_what_it_says_with_the_reference(
    fused, spec, positions, dtype
):
    precision = "fp32" if dtype is torch.float32 else "bf16"
    config = net_config("tiny")
    network, planes = build_network(spec, config, 0), positions[:4].tensor().to(fused.device)
    ours, reference = (
        freeze(network, precision, device=fused.device, neurons=neurons(config))(planes)
        for neurons in (fused.neurons, InferenceNeurons)
    )
    # A bias added after the convolution's rounding rather than before it makes some spikes fall
    # otherwise.
    distance = ours.value_logits_BV.softmax(1) - reference.value_logits_BV.softmax(1)
    assert distance.abs().sum(1).mean() / 2 < 0.02
