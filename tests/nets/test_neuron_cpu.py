"""The compiled neuron against the reference, bit for bit."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from chess_snn.nets.config import NetConfig
from chess_snn.nets.inference_neurons import CompiledNeurons, ReferenceNeurons
from chess_snn.nets.neuron import lif
from chess_snn.nets.neuron_cpu import lif_cpu, memory_of

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
TICKS = pytest.mark.parametrize("ticks", range(1, 9))
# Around a block of 1024 neurons and around a vector of 16, odd numbers included.
SIZES = (1, 7, 16, 33, 1023, 1024, 1025, 4099)


def currents(ticks, size, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed + 100 * ticks + size)
    values = torch.randn(ticks, size, generator=generator)
    values[:, ::5] = 0.5  # the threshold itself
    return values.to(dtype)


def poison(monkeypatch):
    """Fresh memory is full of NaN, so that a number left unwritten cannot look right."""
    real_like = torch.empty_like
    monkeypatch.setattr(
        torch, "empty_like", lambda *a, **k: real_like(*a, **k).fill_(torch.nan)
    )
    real_strided = torch.Tensor.new_empty_strided
    monkeypatch.setattr(
        torch.Tensor, "new_empty_strided", lambda *a, **k: real_strided(*a, **k).fill_(torch.nan)
    )


@DTYPES
@TICKS
def test_every_kernel_equals_the_reference_bit_for_bit(monkeypatch, dtype, ticks):
    poison(monkeypatch)
    for decay, threshold in ((0.5, 0.5), (0.3, 0.7)):
        config = NetConfig(ticks=ticks, decay=decay, threshold=threshold)
        compiled, reference = CompiledNeurons(config), ReferenceNeurons(config)
        for size in SIZES:
            current = currents(ticks, size, dtype)
            shortcut = currents(ticks, size, dtype, seed=1)
            assert torch.equal(
                compiled.fire_static(current[0], ticks), reference.fire_static(current[0], ticks)
            )
            assert torch.equal(compiled.fire(current.clone()), reference.fire(current.clone()))
            assert torch.equal(
                compiled.mean_rate(current.clone()), reference.mean_rate(current.clone())
            )
            for carried in (shortcut, shortcut[:1]):
                total, spikes = compiled.add_and_fire(carried.clone(), current.clone())
                total_expected, expected = reference.add_and_fire(carried, current.clone())
                assert torch.equal(total, total_expected)
                assert torch.equal(spikes, expected)


@DTYPES
@TICKS
def test_the_gradient_equals_the_references(monkeypatch, dtype, ticks):
    poison(monkeypatch)
    for size in SIZES:
        current = currents(ticks, size, dtype)
        weights = currents(ticks, size, dtype, seed=3)
        gradients = []
        for neuron in (lif, lif_cpu):
            x = current.clone().requires_grad_()
            neuron(x, 0.5, 0.5, 2.0).backward(weights)
            gradients.append(x.grad)
        assert torch.equal(*gradients)


def test_the_gradient_of_a_static_current_sums_over_its_ticks():
    gradients = []
    for neuron in (lif, lif_cpu):
        x = currents(1, 500, torch.float32)[0].requires_grad_()
        neuron(x.expand(4, -1), 0.5, 0.5).mean(0).sum().backward()
        gradients.append(x.grad)
    torch.testing.assert_close(*gradients)
    assert gradients[0].abs().sum() > 0


@given(st.integers(1, 8), st.integers(1, 2100), st.integers(0, 2**31), st.booleans())
def test_any_shape_equals_the_reference(ticks, size, seed, is_bfloat16):
    dtype = torch.bfloat16 if is_bfloat16 else torch.float32
    current = 2 * torch.randn(ticks, size, generator=torch.Generator().manual_seed(seed)).to(dtype)
    assert torch.equal(lif_cpu(current, 0.5, 0.5), lif(current, 0.5, 0.5))


@DTYPES
def test_strange_numbers_fire_as_in_the_reference(dtype):
    rows = [float("inf"), float("-inf"), float("nan"), -0.0, 1e-40, 3e38, -3e38, 0.5]
    current = torch.tensor(rows, dtype=dtype).repeat(3, 1)
    assert torch.equal(lif_cpu(current, 0.5, 0.5), lif(current, 0.5, 0.5))


@DTYPES
def test_the_layout_is_kept(dtype):
    folded = torch.randn(6, 5, 8, 8).to(dtype).contiguous(memory_format=torch.channels_last)
    current = folded.unflatten(0, (3, 2))
    spikes = lif_cpu(current, 0.5, 0.5)
    assert spikes.stride() == current.stride()
    assert torch.equal(spikes, lif(current.contiguous(), 0.5, 0.5))


def test_half_precision_is_left_to_the_reference():
    spikes, gradients = [], []
    for neuron in (lif, lif_cpu):
        x = currents(3, 500, torch.float16).requires_grad_()
        fired = neuron(x, 0.5, 0.5)
        fired.backward(currents(3, 500, torch.float16, seed=3))
        spikes.append(fired.detach())
        gradients.append(x.grad)
    assert spikes[0].dtype == gradients[0].dtype == torch.float16
    assert torch.equal(*spikes)
    assert torch.equal(*gradients)


def test_memory_with_gaps_and_other_precisions_are_refused():
    with pytest.raises(ValueError, match="dense ticks"):
        memory_of(torch.zeros(2, 6, 4)[:, :, ::2])
    with pytest.raises(ValueError, match="dense ticks"):
        memory_of(torch.zeros(6, 2, 4).transpose(0, 1))
    with pytest.raises(TypeError, match="float64"):
        memory_of(torch.zeros(2, 3, dtype=torch.float64))


def test_a_shortcut_of_another_layout_is_refused():
    branch = torch.zeros(2, 3, 4, 8, 8)
    shortcut = branch.flatten(0, 1).contiguous(memory_format=torch.channels_last).view_as(branch)
    with pytest.raises(ValueError, match="share their layout"):
        CompiledNeurons(NetConfig()).add_and_fire(shortcut, branch)
