"""The fused kernels against the reference: on a GPU where there is one, else interpreted."""

import pytest
import torch

from chess_snn.nets import build_network, freeze, net_config
from chess_snn.nets.config import NetConfig
from chess_snn.nets.inference_neurons import FusedNeurons, ReferenceNeurons
from chess_snn.nets.neuron import lif

neuron_triton = pytest.importorskip(
    "chess_snn.nets.neuron_triton", reason="triton is not installed: fused neurons are not tested"
)
lif_triton = neuron_triton.lif_triton

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
TRAINED_DTYPES = pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16]
)
TICKS = pytest.mark.parametrize("ticks", [1, 2, 3, 4, 8])
# Around a block of 1024 neurons, odd numbers included.
SIZES = (1, 33, 1024, 1025, 2500)
FORMATS = pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])


def currents(ticks, size, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed + 100 * ticks + size)
    values = torch.randn(ticks, size, generator=generator)
    values[:, ::5] = 0.5  # the threshold itself
    return _representable(values).to(DEVICE, dtype)


def _representable(values):
    """Sums of these need no rounding, which the interpreter does otherwise than a GPU."""
    return values if ON_GPU else values.mul(8).round().div(8)


def images(ticks, dtype, layout, seed=0):
    generator = torch.Generator().manual_seed(seed)
    folded = torch.randn(ticks * 3, 5, 8, 8, generator=generator).to(DEVICE, dtype)
    return folded.contiguous(memory_format=layout).unflatten(0, (ticks, 3))


@pytest.fixture(autouse=True)
def _poison(monkeypatch):
    """Fresh memory is full of NaN, so that a number left unwritten cannot look right."""
    real_like = torch.empty_like
    monkeypatch.setattr(torch, "empty_like", lambda *a, **k: real_like(*a, **k).fill_(torch.nan))
    real_strided = torch.Tensor.new_empty_strided
    monkeypatch.setattr(
        torch.Tensor, "new_empty_strided", lambda *a, **k: real_strided(*a, **k).fill_(torch.nan)
    )


def both(ticks):
    config = NetConfig(ticks=ticks)
    return FusedNeurons(config), ReferenceNeurons(config)


@DTYPES
@TICKS
@pytest.mark.parametrize("size", SIZES)
def test_every_pass_equals_the_reference_bit_for_bit(dtype, ticks, size):
    fused, reference = both(ticks)
    current, shortcut = currents(ticks, size, dtype), currents(ticks, size, dtype, seed=1)
    static = current[0].clone()
    assert torch.equal(fused.fire_static(static, ticks), reference.fire_static(static, ticks))
    assert torch.equal(static, current[0])
    assert torch.equal(fused.fire(current.clone()), reference.fire(current.clone()))
    assert torch.equal(fused.mean_rate(current.clone()), reference.mean_rate(current.clone()))
    for carried in (shortcut, shortcut[:1]):
        total, spikes = fused.add_and_fire(carried.clone(), current.clone())
        total_expected, expected = reference.add_and_fire(carried, current.clone())
        assert torch.equal(total, total_expected)
        assert torch.equal(spikes, expected)


@FORMATS
@DTYPES
@pytest.mark.parametrize("ticks", [1, 4])
def test_the_bias_of_each_channel_is_added_first(layout, dtype, ticks):
    fused, reference = both(ticks)
    current, shortcut = images(ticks, dtype, layout), images(ticks, dtype, layout, seed=1)
    # Steps of 1/8: sums with numbers of few digits are exact in both precisions.
    bias = (torch.arange(5) - 2).div(8).to(DEVICE, dtype)
    current, shortcut = current.mul(8).round_().div_(8), shortcut.mul(8).round_().div_(8)
    spikes = fused.fire(current.clone(), bias)
    assert spikes.stride() == current.stride()
    assert torch.equal(spikes, reference.fire(current.clone(), bias))
    assert not torch.equal(spikes, reference.fire(current.clone()))
    assert torch.equal(
        fused.mean_rate(current.clone(), bias), reference.mean_rate(current.clone(), bias)
    )
    for ours, expected in zip(
        fused.add_and_fire(shortcut.clone(), current.clone(), bias),
        reference.add_and_fire(shortcut.clone(), current.clone(), bias),
        strict=True,
    ):
        assert torch.equal(ours, expected)


@TRAINED_DTYPES
@TICKS
@pytest.mark.parametrize("size", SIZES)
def test_the_gradient_equals_the_references(dtype, ticks, size):
    current, weights = currents(ticks, size, dtype), currents(ticks, size, dtype, seed=3)
    gradients, spikes = [], []
    for neuron in (lif, lif_triton):
        x = current.clone().requires_grad_()
        fired = neuron(x, 0.5, 0.5, 2.0)
        fired.backward(weights)
        gradients.append(x.grad)
        spikes.append(fired.detach())
    assert torch.equal(*spikes)
    # A fused multiplication and addition rounds once where two operations round twice.
    loose = {"rtol": 0.03, "atol": 0.02} if dtype is torch.bfloat16 and not ON_GPU else {}
    torch.testing.assert_close(*gradients, **loose)


@FORMATS
def test_the_gradient_of_a_static_current_sums_over_its_ticks(layout):
    gradients = []
    for neuron in (lif, lif_triton):
        x = images(1, torch.float32, layout)[0].requires_grad_()
        fired = neuron(x.expand(4, *x.shape), 0.5, 0.5)
        (fired * images(4, torch.float32, torch.contiguous_format, seed=2)).sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
    assert gradients[0].abs().sum() > 0


def test_a_gradient_too_large_for_half_precision_is_infinite():
    """And no large number: training has to see that it overflowed."""
    x = currents(2, 33, torch.float16).requires_grad_()
    lif_triton(x, 0.5, 0.5).backward(torch.full((2, 33), 6e4, dtype=torch.float16, device=DEVICE))
    reference = currents(2, 33, torch.float16).requires_grad_()
    lif(reference, 0.5, 0.5).backward(torch.full_like(reference, 6e4))
    assert reference.grad.isinf().any()
    assert torch.equal(x.grad.isinf(), reference.grad.isinf())


@DTYPES
def test_strange_numbers_fire_as_in_the_reference(dtype):
    rows = [float("inf"), float("-inf"), float("nan"), -0.0, 1e-40, 3e38, -3e38, 0.5]
    current = torch.tensor(rows, dtype=dtype, device=DEVICE).repeat(3, 1)
    assert torch.equal(lif_triton(current, 0.5, 0.5), lif(current, 0.5, 0.5))


def test_memory_with_gaps_is_refused():
    with pytest.raises(ValueError, match="dense ticks"):
        lif_triton(torch.zeros(2, 6, 4, device=DEVICE)[:, :, ::2], 0.5, 0.5)
    branch = torch.zeros(2, 3, 4, 8, 8, device=DEVICE)
    with pytest.raises(ValueError, match="share their layout"):
        both(2)[0].add_and_fire(branch.transpose(3, 4), branch)


@DTYPES
def test_a_network_with_fused_neurons_says_what_it_says_with_the_reference(spec, positions, dtype):
    precision = "fp32" if dtype is torch.float32 else "bf16"
    config = net_config("tiny")
    network = build_network(spec, config, 0)
    few = positions[:4]
    fused, reference = (
        freeze(network, precision, device=DEVICE, neurons=neurons(config))(few.tensor().to(DEVICE))
        for neurons in (FusedNeurons, ReferenceNeurons)
    )
    # A bias added after the convolution's rounding rather than before it makes some spikes fall
    # otherwise.
    distance = fused.value_logits_BV.softmax(1) - reference.value_logits_BV.softmax(1)
    assert distance.abs().sum(1).mean() / 2 < 0.02
