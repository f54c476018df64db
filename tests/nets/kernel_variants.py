"""The table of Triton kernels that are compiled without a GPU: ``VARIANTS``.

A kernel that is missing here fails ``test_compiled_kernels.py``. Add a variant for each form in
which the program launches it that makes other machine code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from chess_snn.nets.gpu.conv_neuron import NUM_WARPS, choose_tiling
from chess_snn.nets.model.readouts import ACTIONS_OF_A_BLOCK

ARCHITECTURES = (80, 90, 100)
"""A100, H100 and H200, B200."""


@dataclass(frozen=True)
class Variant:
    """One form of a kernel, and what its machine code may use."""

    kernel: str
    """Module and function."""
    constants: dict[str, Any]
    """Values of all its ``tl.constexpr`` arguments."""
    most_registers: int
    """Registers of a thread. 64 let half of an H100's threads be resident."""
    types: dict[str, str] = field(default_factory=dict)
    """Types of arguments that are not ``pointer``, or i32 where their name begins with ``num_``."""
    pointer: str = "*bf16"
    num_warps: int = 4
    options: dict[str, Any] = field(default_factory=dict)
    """Options of the launch, but ``num_warps``."""
    is_memory_pass: bool = True
    """Whether all loads and stores of global memory must be of 128 bits or more."""
    products: str | None = None
    """Beginning of the names of tensor core instructions on sm_90."""
    architectures: tuple[int, ...] = ARCHITECTURES
    is_slow: bool = False
    """Left to the slow test."""

    @property
    def label(self) -> str:
        constants = " ".join(f"{name}={value}" for name, value in self.constants.items())
        return f"{self.kernel} {self.pointer} {constants}"


NEURONS = "chess_snn.nets.gpu.neuron_triton_kernels"
LIF = {"DECAY": 0.5, "THRESHOLD": 0.5, "BLOCK": 1024}
NO_BIAS, BIAS = {"CHANNELS": 0, "SPACING": 1}, {"CHANNELS": 64, "SPACING": 1}


def neuron_passes(ticks: int, pointer: str, **options: Any) -> list[Variant]:
    """Every pass over the currents of a layer, as inference and training launch it."""
    lif = LIF | {"TICKS": ticks}

    def form(name: str, types: dict[str, str] | None = None, **constants: Any) -> Variant:
        return Variant(
            f"{NEURONS}.{name}", lif | constants, most_registers=64, types=types or {},
            pointer=pointer, **options,
        )

    return [
        form("fire", **NO_BIAS, CURRENT_MOVES=False),
        form("fire", **BIAS, CURRENT_MOVES=True),
        form("add_and_fire", **BIAS, SHORTCUT_MOVES=False),
        form("add_and_fire", **BIAS, SHORTCUT_MOVES=True),
        form("mean_rate", {"rate": "*fp32"}, **BIAS),
        form("fire_and_keep_charge", CURRENT_MOVES=True),
        form("backward", HALF_ALPHA=1.0, STEEPNESS=3.14159),
    ]


CONV = "chess_snn.nets.gpu.conv_neuron_triton_kernels.convolve_and_fire"
CONV_TYPES = {
    "spikes": "*i8", "weight": "*i8", "fired": "*i8", "scale": "*fp32", "bias": "*fp32",
}
SHARED_MEMORY = {80: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024}
"""Bytes that a block may have."""
LOCAL_MEMORY = {80: 40, 90: 0, 100: 8}
"""Bytes of a thread's registers that may lie in memory. Tiles are chosen for Hopper; on the others
one form of the convolution needs a few more registers than there are."""


def conv_form(
    ticks: int, channels: int, *, outputs: int | None = None, levels: int = 0, moves: bool = True,
    shortcut: bool = False, shortcut_moves: bool = True, rate: bool = False, side: int = 3,
    architecture: int = 90, **options: Any,
) -> Variant:
    """A convolution with its neurons, as inference launches it."""
    outputs = outputs or channels
    tiling = choose_tiling(
        ticks if moves else 1, channels, outputs, SHARED_MEMORY[architecture]
    )
    types = CONV_TYPES | ({"fired": "*fp32"} if rate else {})
    return Variant(
        CONV,
        {
            "CHANNELS": channels, "OUTPUTS": outputs, "SIDE": side, "HEIGHT": 8, "WIDTH": 8,
            "INPUT_MOVES": moves, "HAS_SHORTCUT": shortcut, "SHORTCUT_MOVES": shortcut_moves,
            "KEEPS_TOTAL": shortcut or not moves, "IS_RATE": rate, "DECAY": 0.5,
            "THRESHOLD": 0.5, "LEVELS": levels, "TICKS": ticks, "ROWS": tiling.rows,
            "COLUMNS": tiling.columns, "DEPTH": tiling.depth, "STAGES": tiling.stages,
        },
        most_registers=255, types=types, num_warps=NUM_WARPS,
        options={"num_stages": tiling.stages, "enable_fp_fusion": False},
        is_memory_pass=False, products="IGMMA",
        architectures=(architecture,), **options,
    )


def conv_layers(ticks: int, channels: int, **options: Any) -> list[Variant]:
    """Every layer of a network of these ticks and channels that fires."""
    return [
        conv_form(ticks, channels, **options),
        conv_form(ticks, 32, outputs=channels, moves=False, **options),
        conv_form(ticks, channels, shortcut=True, shortcut_moves=False, **options),
        conv_form(ticks, channels, shortcut=True, **options),
        conv_form(ticks, channels, rate=True, **options),
        conv_form(ticks, channels, outputs=8, side=1, **options),
    ]


NORM = "chess_snn.nets.gpu.norm_neuron_triton_kernels"


def norm_passes(ticks: int, pointer: str, **options: Any) -> list[Variant]:
    """The passes that normalise and fire, as training launches them for 64 channels.

    A layer: without a shortcut; the stem, whose branch has one tick; with a shortcut.
    """
    neurons = {
        "CHANNELS": 64, "EPSILON": 1e-5, "DECAY": 0.5, "THRESHOLD": 0.5, "LEVELS": 0,
        "TICKS": ticks, "ROWS": 16, "COLUMNS": 64,
    }
    surrogate = {"HALF_ALPHA": 1.0, "STEEPNESS": 3.14159}
    moments = dict.fromkeys(("mean", "variance", "weight", "bias", "partial", "means"), "*fp32")
    plain, stem, block = (
        neurons | {"MOVES": moves, "KEEPS": keeps}
        for moves, keeps in ((True, False), (False, True), (True, True))
    )

    def form(name: str, most_registers: int, constants: dict[str, Any], **more: Any) -> Variant:
        # The sums that a program leaves are few, and narrow.
        return Variant(
            f"{NORM}.{name}", constants | more, most_registers, moments, pointer,
            is_memory_pass=name != "sum_gradients", **options,
        )

    no_shortcut = {"HAS_SHORTCUT": False, "SHORTCUT_MOVES": False}
    tile = {name: neurons[name] for name in ("CHANNELS", "TICKS", "ROWS", "COLUMNS")}
    return [
        Variant(f"{NORM}.sum_branch", tile, 64, moments, pointer, is_memory_pass=False, **options),
        Variant(
            f"{NORM}.find_moments", tile | {"MOMENTUM": 0.1, "ROWS": 128, "COLUMNS": 8}, 64,
            moments | dict.fromkeys(("running_mean", "running_variance"), "*fp32"), pointer,
            is_memory_pass=False, **options,
        ),
        form("normalise_and_fire", 64, plain, **no_shortcut),
        form("normalise_and_fire", 64, stem, **no_shortcut),
        form("normalise_and_fire", 64, block, HAS_SHORTCUT=True, SHORTCUT_MOVES=True),
        form("normalise_and_fire", 64, block, HAS_SHORTCUT=True, SHORTCUT_MOVES=False),
        form("sum_gradients", 168, plain, HAS_GRAD_CURRENT=False, **surrogate),
        form("sum_gradients", 168, stem, HAS_GRAD_CURRENT=True, **surrogate),
        form("sum_gradients", 168, block, HAS_GRAD_CURRENT=True, **surrogate),
        form("sum_gradients", 168, block, HAS_GRAD_CURRENT=False, **surrogate),
        form("differentiate", 168, plain, **surrogate),
        form("differentiate", 168, stem, **surrogate),
        form("differentiate", 168, block, **surrogate),
    ]


def legal_readout(channels: int, **options: Any) -> Variant:
    """The readout of chess's legal moves, as a network that plays launches it."""
    return Variant(
        "chess_snn.nets.gpu.readout_triton_kernels.read_legal",
        {"CHANNELS": channels, "DEPTH": 1 << (channels - 1).bit_length(), "SQUARES": 64,
         "PLANES": 73, "COLUMNS": 64, "HAS_TARGET": True, "BLOCK": ACTIONS_OF_A_BLOCK},
        128, {"target_actions": "*i64", "legal_actions": "*i16", "num_legal": "*i32"}, "*fp32",
        is_memory_pass=False, **options,
    )


def in_default_tests(variants: list[Variant]) -> Iterator[Variant]:
    """Yield the forms for sm_90, and leave those for the others to the slow test."""
    others = tuple(each for each in ARCHITECTURES if each != 90)
    for variant in variants:
        yield replace(variant, architectures=(90,))
        yield replace(variant, architectures=others, is_slow=True)


VARIANTS: list[Variant] = [
    *in_default_tests([legal_readout(64)]),
    *(legal_readout(channels, is_slow=True) for channels in (96, 256)),
    *in_default_tests(norm_passes(4, "*bf16")),
    *norm_passes(4, "*fp32", is_slow=True),
    *norm_passes(1, "*bf16", is_slow=True),
    *in_default_tests(neuron_passes(4, "*bf16")),
    *neuron_passes(4, "*fp32", is_slow=True),
    *neuron_passes(1, "*bf16", is_slow=True),
    *neuron_passes(8, "*bf16", is_slow=True),
    *(conv_form(ticks, channels, shortcut=True, levels=levels, architecture=architecture,
                is_slow=architecture != 90)
      for ticks, channels, levels in ((4, 64, 0), (1, 128, 4)) for architecture in ARCHITECTURES),
    *(layer for ticks, channels in ((2, 32), (4, 64), (4, 128), (4, 256), (8, 64), (3, 128))
      for layer in conv_layers(ticks, channels, is_slow=True)),
    # The stem of `small` for chess with the rule planes: 48 planes and 16 empty ones.
    conv_form(4, 64, moves=False, is_slow=True),
    *(layer for channels in (32, 64, 128, 256)
      for layer in conv_layers(1, channels, levels=4, is_slow=True)),
    *conv_layers(1, 64, levels=127, is_slow=True),
]
