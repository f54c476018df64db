"""All blocks as one kernel: on a CPU, where ``cuda_on_host.h`` stands for CUDA, bit for bit.

A test on a GPU compares it with the kernels of single layers.
"""

import ctypes
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
import torch
from torch.nn.functional import conv2d

from chess_snn.nets import NetConfig, build_network, freeze, net_config
from chess_snn.nets.folded_convs import round_weights
from chess_snn.nets.gpu.conv_neuron import FusedConv
from chess_snn.nets.gpu.cuda_kernel import compile_cuda, has_cuda_bindings
from chess_snn.nets.gpu.trunk import SOURCES, FusedTrunk, shape_of
from chess_snn.nets.inference_neurons import InferenceNeurons
from chess_snn.nets.model.planes import expand_planes

pytest.importorskip("triton", reason="triton is not installed: no layers are fused")

HERE = Path(__file__).parent
COMPILER = shutil.which("g++") or shutil.which("clang++")
GUARD, POISON = 4096, 113
HOPPER, AMPERE = 227 * 1024, 163 * 1024
"""Shared memory that one block may have, in bytes."""
ARCHITECTURES = {80: AMPERE, 90: HOPPER, 100: HOPPER}


def config(ticks, channels, *, levels=0, blocks=1, threshold=0.7):
    activation = {"activation": "ilif", "levels": levels} if levels else {}
    return NetConfig(
        blocks=blocks, channels=channels, ticks=ticks, decay=0.6, threshold=threshold, **activation
    )


CASES = {
    "small": (config(4, 64), HOPPER, 3, 1),
    "two blocks, several groups of boards": (config(2, 32, blocks=2), HOPPER, 9, 2),
    "more launched than there is work": (config(2, 64), HOPPER, 1, 3),
    "channels divided": (config(2, 128), HOPPER, 3, 2),
    "8 warps, 2 stages": (config(4, 128), HOPPER, 2, 1),
    "little memory": (config(4, 64), AMPERE, 2, 1),
    "3 of 16 pairs": (config(1, 96, levels=8), HOPPER, 5, 2),
    "exact thresholds": (config(1, 96, levels=8, threshold=0.5), HOPPER, 3, 1),
    "one level": (config(1, 64, levels=1, threshold=0.25), HOPPER, 5, 1),
    "sums above 2^22": (config(1, 128, levels=64), HOPPER, 3, 1),
    "values of ReLU": (config(1, 64, levels=127, threshold=1.0), HOPPER, 5, 1),
}

QUICK_CASES = (
    "two blocks, several groups of boards", "3 of 16 pairs", "one level",
)


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """The kernel for a shape, compiled for this processor."""
    if COMPILER is None:
        pytest.skip("no C++ compiler: the kernel cannot run on this processor")
    folder = tmp_path_factory.mktemp("trunk")

    def compiled(shape):
        library = folder / f"{abs(hash(shape))}.so"
        constants = [f"-D{name}={value}" for name, value in shape.constants.items()]
        subprocess.run(
            [COMPILER, "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{files('chess_snn.nets.gpu')}",
             *constants, "-o", library, HERE / "trunk_on_host.cpp"], check=True,
        )
        return ctypes.CDLL(library)

    return compiled


def convs_of(config, seed):
    generator = torch.Generator().manual_seed(seed)
    convs = []
    for _ in range(2 * config.blocks + 1):
        conv = torch.nn.Conv2d(config.channels, config.channels, 3, padding=1).requires_grad_(False)
        for tensor, scale in ((conv.weight, 0.1), (conv.bias, 0.2)):
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale)
        convs.append(conv)
    return convs


def reference(config, convs, current_BCHW):
    """Spikes and rates by convolutions in float64 and the reference's neurons."""
    neurons = InferenceNeurons(config)

    def currents(conv, x_TBCHW):
        weight, scale = round_weights(conv.weight)
        sums = conv2d(x_TBCHW.flatten(0, 1).double(), weight.double(), padding=1).float()
        current = sums * scale.view(-1, 1, 1) + conv.bias.view(-1, 1, 1)
        return current.bfloat16().unflatten(0, x_TBCHW.shape[:2])

    *convs, head = convs
    total, fired = current_BCHW.unsqueeze(0), neurons.fire_static(current_BCHW, config.ticks)
    for first, second in zip(convs[::2], convs[1::2], strict=True):
        inner = neurons.fire(currents(first, fired))
        total, fired = neurons.add_and_fire(total.clone(), currents(second, inner))
    return fired, neurons.mean_rate(currents(head, fired))


def run_on_host(library, trunk, current_BHWC, blocks):
    """Spikes [T, B, H, W, C] and rates [B, H, W, C], from memory with guards."""
    def guarded(count, dtype):
        return torch.full((count + 2 * GUARD,), POISON, dtype=dtype)

    def address(tensor):
        return ctypes.c_void_p(tensor.data_ptr())

    count, ticks = current_BHWC.numel(), trunk._config.ticks
    fired, rate = guarded(ticks * count, torch.uint8), guarded(count, torch.float32)
    library.fire_trunk_on_host(
        blocks, address(current_BHWC), address(trunk.weight), address(trunk.scale),
        address(trunk.bias), address(fired[GUARD:]), address(rate[GUARD:]), len(current_BHWC),
    )
    for memory in (fired, rate):
        assert (memory[:GUARD] == POISON).all()
        assert (memory[-GUARD:] == POISON).all()
    shape = current_BHWC.shape
    return fired[GUARD:-GUARD].view(ticks, *shape), rate[GUARD:-GUARD].view(shape)


@pytest.mark.compiles_kernels
@pytest.mark.parametrize("case", [
    pytest.param(case, marks=[] if case in QUICK_CASES else pytest.mark.slow) for case in CASES
])
def test_it_fires_what_the_reference_fires(build, case):
    config, memory, batch, blocks = CASES[case]
    shape, convs = shape_of(config, memory), convs_of(config, seed=1)
    library = build(shape)
    assert library.shared_bytes_on_host() == shape.shared_bytes
    current = torch.randn(
        batch, 8, 8, config.channels, generator=torch.Generator().manual_seed(2)
    ).bfloat16()
    trunk = FusedTrunk([FusedConv(conv, config) for conv in convs], config)
    fired, rate = run_on_host(library, trunk, current, blocks)
    expected, expected_rate = reference(config, convs, current.permute(0, 3, 1, 2))
    assert 0.1 < expected.float().mean() < config.most_spikes
    assert torch.equal(fired.float(), expected.permute(0, 1, 3, 4, 2).float())
    assert torch.equal(rate, expected_rate.permute(0, 2, 3, 1))


def test_shapes_that_it_cannot_have():
    small = net_config("small")
    assert shape_of(small, HOPPER).warps == 4
    assert shape_of(net_config("base"), HOPPER).warps == 8
    for size, changes in (
        ("large", {}), ("small", {"channels": 48}), ("small", {"ticks": 3}),
        ("small", {"ticks": 8}), ("small", {"activation": "relu", "ticks": 1}),
    ):
        assert shape_of(net_config(size, **changes), HOPPER) is None
    assert shape_of(small, 64 * 1024) is None


@pytest.mark.compiles_kernels
@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("case", [
    "small", pytest.param("8 warps, 2 stages", marks=pytest.mark.slow),
    pytest.param("3 of 16 pairs", marks=pytest.mark.slow),
])
def test_machine_code_keeps_its_numbers_in_registers(architecture, case):
    if not has_cuda_bindings():
        pytest.skip("cuda.bindings are not installed: the kernel is not compiled for GPUs")
    shape = shape_of(CASES[case][0], ARCHITECTURES[architecture])
    if shape is None:
        pytest.skip(f"sm_{architecture} has too little memory for it")
    code, log = compile_cuda(SOURCES, shape.constants, architecture)
    assert code.startswith(b"\x7fELF")
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    assert "warning" not in log


def test_a_kernel_that_does_not_compile_says_why():
    if not has_cuda_bindings():
        pytest.skip("cuda.bindings are not installed: the kernel is not compiled for GPUs")
    constants = shape_of(net_config("small"), HOPPER).constants | {"STAGES": "many"}
    with pytest.raises(RuntimeError, match="many"):
        compile_cuda(SOURCES, constants, 90)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("changes", [
    {"size": "small"}, {"size": "tiny"}, {"size": "base"}, {"size": "small", "ticks": 1},
    {"size": "small", "ticks": 1, "activation": "ilif", "levels": 8},
    {"size": "small", "ticks": 1, "activation": "ilif", "levels": 127},
    {"size": "base", "ticks": 1, "activation": "ilif", "levels": 8, "channels": 96},
], ids=str)
def test_on_a_gpu_it_fires_what_single_layers_fire(spec, positions, changes):
    """Positions in more boards than a GPU has at a time."""
    network = build_network(spec, net_config(**changes), 0)
    seen = positions.planes[:, : spec.num_planes].repeat(27, axis=0)[:2501].view("int64")
    planes = expand_planes(torch.from_numpy(seen).cuda(), spec.board_shape, torch.uint8)
    one, other = (
        freeze(network, "int8", device="cuda", layers=layers)(planes)
        for layers in ("fused", "trunk")
    )
    assert torch.equal(one.policy_logits_BA, other.policy_logits_BA)
    assert torch.equal(one.value_logits_BV, other.value_logits_BV)
