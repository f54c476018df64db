"""The tile of each processor's instructions, compiled on any processor.

What it computes is compared with other layers in ``test_trunk_cpu.py``, on processors that can.
"""

import re
from dataclasses import replace

import pytest
from llvmlite import binding, ir

from chess_snn.nets.cpu.dot_tile import (
    ARRAYS,
    AVX2,
    AVX_VNNI,
    DOT_PRODUCTS,
    NUMBERS,
    PLACES,
    SDOT,
    TILE_SQUARES,
    VNNI,
    Tile,
    find_dot_product,
    most_products,
)

KINDS = {
    **dict.fromkeys(PLACES, ir.IntType(64)), **dict.fromkeys(ARRAYS, ir.IntType(8).as_pointer()),
    **dict.fromkeys(NUMBERS, ir.FloatType()),
}
PROCESSORS = {
    VNNI: ("x86_64-linux-gnu", "cascadelake", "vpdpbusd", "%rsp"),
    AVX_VNNI: ("x86_64-linux-gnu", "alderlake", "vpdpbusd", "%rsp"),
    AVX2: ("x86_64-linux-gnu", "haswell", "vpmaddubsw", "%rsp"),
    SDOT: ("aarch64-linux-gnu", "neoverse-n1", "sdot", "[sp"),
}
IDS = [product.feature for product in DOT_PRODUCTS]


@pytest.fixture(scope="module", autouse=True)
def targets():
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()


def assembly(product, carries, tile=None):
    """Assembly of a function that fires one tile."""
    triple, processor, *_ = PROCESSORS[product]
    module = ir.Module()
    module.triple = binding.Target.from_triple(triple).triple
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), KINDS.values()), "fire")
    builder = ir.IRBuilder(function.append_basic_block())
    argument = dict(zip(KINDS, function.args, strict=True))
    Tile(builder, argument, tile or product).write(carries)
    builder.ret_void()
    compiled = binding.parse_assembly(str(module))
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=processor, opt=3)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    binding.create_pass_builder(machine, options).getModulePassManager().run(
        compiled, binding.create_pass_builder(machine, options)
    )
    return machine.emit_assembly(compiled)


def loops_of(product, text):
    """Lines of assembly in each basic block that multiplies, from the first product to the last."""
    instruction = PROCESSORS[product][2]
    blocks = re.split(r"^\.?[A-Za-z]\w*:", text, flags=re.M)
    found = [re.search(rf"\b{instruction}\b.*\b{instruction}\b", block, re.S) for block in blocks]
    return [match.group() for match in found if match]


@pytest.mark.parametrize("carries", [False, True], ids=["alone", "with a shortcut"])
@pytest.mark.parametrize("product", DOT_PRODUCTS, ids=IDS)
def test_sums_stay_in_registers(product, carries):
    _, _, instruction, stack = PROCESSORS[product]
    loops = loops_of(product, assembly(product, carries))
    assert loops
    for loop in loops:
        assert len(re.findall(rf"\b{instruction}\b", loop)) % (TILE_SQUARES * product.vectors) == 0
        assert stack not in loop


@pytest.mark.parametrize("product", DOT_PRODUCTS, ids=IDS)
def test_a_tile_that_is_too_large_is_found(product):
    larger = replace(product, vectors=4 * product.vectors)
    loops = loops_of(product, assembly(product, False, larger))
    assert any(PROCESSORS[product][3] in loop for loop in loops)


@pytest.mark.parametrize(("processor", "features", "expected"), [
    ("neoverse-n1", "", SDOT), ("apple-m1", "", SDOT), ("generic", "+dotprod", SDOT),
    ("cortex-a72", "", None), ("generic", "+neon", None),
])
def test_arms_instruction_is_known_by_the_processors_name(processor, features, expected):
    assert find_dot_product("aarch64-linux-gnu", processor, features) is expected


@pytest.mark.parametrize(("features", "expected"), [
    ("+avx2,+avx512vnni,+avxvnni", VNNI), ("+avx2,-avx512vnni,+avxvnni", AVX_VNNI),
    ("+avx2,-avxvnni", AVX2), ("+sse4.2", None),
])
def test_the_best_instruction_of_an_x86_processor_is_found(features, expected):
    assert find_dot_product("x86_64-linux-gnu", "generic", features) is expected


@pytest.mark.parametrize("spikes", [1, 8, 64])
@pytest.mark.parametrize("product", DOT_PRODUCTS, ids=IDS)
def test_the_most_products_are_those_that_fit(product, spikes):
    largest = 2**15 - 1 if product is AVX2 else 2**31 - 1
    of_product = (2 if product is AVX2 else 4) * spikes * 127
    most = most_products(spikes, product)
    assert most * of_product <= largest < (most + 1) * of_product
