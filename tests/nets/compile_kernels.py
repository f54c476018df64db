"""Compile Triton kernels to machine code, without a GPU, and say what it uses.

    python tests/nets/compile_kernels.py TABLE [--slow]

Needs only the wheel of Triton, which has the assembler and the disassembler. It runs in a process
of its own, since Triton reads TRITON_INTERPRET when a kernel is defined.

Prints one JSON object: the version of Triton; the kernels of the package that another kernel does
not call; and for each variant of the table and each architecture what was found, with its faults.
"""

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import triton
from kernel_variants import LOCAL_MEMORY, SHARED_MEMORY, Variant
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

import chess_snn

PACKAGE = Path(chess_snn.__file__).parent
TOOLS = Path(triton.__file__).parent / "backends/nvidia/bin"
THREADS_OF_A_WARP = 32


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("table")
    parser.add_argument("--slow", action="store_true")
    arguments = parser.parse_args()
    variants: list[Variant] = importlib.import_module(arguments.table).VARIANTS
    found = [
        compile_variant(variant, architecture)
        for variant in variants if variant.is_slow == arguments.slow
        for architecture in variant.architectures
    ]
    json.dump({"triton": triton.__version__, "kernels": launched(), "found": found}, sys.stdout)


def launched() -> list[str]:
    """The kernels in all modules of the package, without those that another one calls."""
    kernels = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if "triton.jit" in path.read_text():
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            for function in vars(importlib.import_module(name)).values():
                if isinstance(function, JITFunction) and function.fn.__module__ == name:
                    kernels[f"{name}.{function.fn.__name__}"] = function.src
    called = {
        called for source in kernels.values()
        for called in re.findall(r"\b(\w+)\(", source.partition("(")[2])
    }
    return [name for name in kernels if name.rpartition(".")[2] not in called]


def compile_variant(variant: Variant, architecture: int) -> dict[str, Any]:
    module, _, name = variant.kernel.rpartition(".")
    function = getattr(importlib.import_module(module), name)
    signature, constants, alignments = {}, {}, {}
    for place, argument in enumerate(function.arg_names):
        if argument in variant.constants:
            signature[argument] = "constexpr"
            constants[place,] = variant.constants[argument]
        else:
            usual = "i32" if argument.startswith("num_") else variant.pointer
            signature[argument] = variant.types.get(argument, usual)
            # A launch finds this: torch's memory is aligned, and sizes are multiples of 16.
            alignments[place,] = [["tt.divisibility", 16]]
    source = ASTSource(fn=function, signature=signature, constexprs=constants, attrs=alignments)
    result: dict[str, Any] = {"label": variant.label, "architecture": architecture}
    try:
        compiled = triton.compile(
            source, target=GPUTarget("cuda", architecture, THREADS_OF_A_WARP),
            options={"num_warps": variant.num_warps, **variant.options},
        )
    except Exception as error:  # noqa: BLE001 - the report names every variant that fails
        return result | {"faults": [f"does not compile: {type(error).__name__}: {error}"]}
    used = read_machine_code(compiled.asm["cubin"]) | {"shared": compiled.metadata.shared}
    return result | used | {"faults": find_faults(variant, architecture, used)}


def read_machine_code(cubin: bytes) -> dict[str, Any]:
    """Registers, local memory, and the instructions that move data."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [TOOLS / "cuobjdump", "--dump-resource-usage", "--dump-sass", file.name],
            capture_output=True, text=True, check=True,
        ).stdout
    usage = {name: int(size) for name, size in re.findall(r"(REG|STACK|LOCAL):(\d+)", text)}
    operations = re.findall(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", text, re.M)
    return {
        "registers": usage["REG"], "local": usage["STACK"] + usage["LOCAL"],
        "spills": sum(operation.startswith(("LDL", "STL")) for operation in operations),
        "transfers": sorted({
            operation for operation in operations if operation.startswith(("LDG", "STG"))
        }),
        "products": sorted({
            operation for operation in operations if re.match(r"U?\w*MMA", operation)
        }),
        "instructions": len(operations),
    }


def find_faults(variant: Variant, architecture: int, used: dict[str, Any]) -> list[str]:
    faults = []
    if used["local"] > LOCAL_MEMORY[architecture]:
        faults.append(f"spills: {used['local']} bytes of local memory, {used['spills']} accesses")
    if used["registers"] > variant.most_registers:
        faults.append(f"registers: {used['registers']} are more than {variant.most_registers}")
    if used["shared"] > SHARED_MEMORY[architecture]:
        faults.append(f"shared memory: {used['shared']} > {SHARED_MEMORY[architecture]} bytes")
    others = [name for name in used["products"] if not name.startswith(variant.products or "")]
    if architecture == 90 and variant.products and (others or not used["products"]):
        faults.append(f"products: {used['products']} are not {variant.products}")
    narrow = [name for name in used["transfers"] if width(name) < 128]
    if variant.is_memory_pass and narrow:
        faults.append(f"narrow: {', '.join(narrow)}")
    return faults


def width(transfer: str) -> int:
    """Bits that an instruction such as LDG.E.128 moves for a thread, 32 or less if unnamed."""
    return max((int(part) for part in transfer.split(".") if part.isdigit()), default=32)


if __name__ == "__main__":
    main()
