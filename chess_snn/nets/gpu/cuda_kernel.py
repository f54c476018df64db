"""A kernel in CUDA C++: compiled by NVRTC, which needs no GPU, and launched by the driver.

Both are behind NVIDIA's ``cuda.bindings``, which come with torch for CUDA, and with no other torch.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, Final

from chess_snn.later import torch

_LOG = logging.getLogger(__name__)
_COMMON_OPTIONS: Final = ("--std=c++17", "--fmad=false", "--ptxas-options=-v")
"""No product is added before it was rounded; the log says what registers hold."""


@cache
def has_cuda_bindings() -> bool:
    """Whether kernels in CUDA C++ can be compiled here; if not, the log says so once."""
    if find_spec("cuda") is not None and find_spec("cuda.bindings") is not None:
        return True
    _LOG.warning(
        "cuda.bindings are not installed: networks in int8 run one kernel a layer, slower; "
        "install the cuda-bindings that belong to this torch"
    )
    return False


def compile_cuda(
    sources: Sequence[str], constants: Mapping[str, object], architecture: int
) -> tuple[bytes, str]:
    """Machine code and the compiler's log.

    Args:
        sources: files of this folder, one after the other; the last one gives the name.
        constants: what the source takes as defined.
        architecture: of the GPU: 90 for compute capability 9.0.

    Raises:
        RuntimeError: it does not compile, or the compiler is missing.
    """
    from cuda.bindings import nvrtc  # noqa: PLC0415 - comes with torch for CUDA alone

    file = sources[-1]
    source = b"".join(
        f'#line 1 "{each}"\n'.encode() + (files("chess_snn.nets.gpu") / each).read_bytes()
        for each in sources
    )
    options = [f"--gpu-architecture=sm_{architecture}", *_COMMON_OPTIONS]
    options += [f"-D{name}={value}" for name, value in constants.items()]
    program = _checked(nvrtc.nvrtcCreateProgram(source, file.encode(), 0, [], []))
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
    log = bytearray(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
    _checked(nvrtc.nvrtcGetProgramLog(program, log))
    text = log.decode(errors="replace").rstrip("\0")
    if status:
        raise RuntimeError(f"{file} does not compile for sm_{architecture}:\n{text}")
    code = bytearray(_checked(nvrtc.nvrtcGetCUBINSize(program)))
    _checked(nvrtc.nvrtcGetCUBIN(program, code))
    _checked(nvrtc.nvrtcDestroyProgram(program))
    return bytes(code), text


class CudaKernel:
    """A kernel on the current device."""

    def __init__(self, code: bytes, name: str, shared_bytes: int) -> None:
        """Load it.

        Args:
            code: of :func:`compile_cuda`.
            name: declared as ``extern "C"``.
            shared_bytes: of each block.

        Raises:
            RuntimeError: the driver refuses it.
        """
        from cuda.bindings import driver  # noqa: PLC0415 - comes with torch for CUDA alone

        self._driver, self._shared_bytes = driver, shared_bytes
        self._module = _checked(driver.cuModuleLoadData(code))
        self._function = _checked(driver.cuModuleGetFunction(self._module, name.encode()))
        limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _checked(driver.cuFuncSetAttribute(self._function, limit, shared_bytes))

    def launch(self, blocks: int, threads: int, *arguments: torch.Tensor | int) -> None:
        """Put it on torch's current stream; integers are 32 bits wide.

        Raises:
            RuntimeError: the driver refuses it.
        """
        values = tuple(
            each.data_ptr() if isinstance(each, torch.Tensor) else each for each in arguments
        )
        types = tuple(
            ctypes.c_void_p if isinstance(each, torch.Tensor) else ctypes.c_uint
            for each in arguments
        )
        stream: Any = torch.cuda.current_stream()
        _checked(self._driver.cuLaunchKernel(
            self._function, blocks, 1, 1, threads, 1, 1, self._shared_bytes,
            stream.cuda_stream, (values, types), 0,
        ))


def _checked(answer: tuple[Any, ...]) -> Any:
    """The result behind the status of a call.

    Raises:
        RuntimeError: the status is an error.
    """
    status, *results = answer
    if status:
        raise RuntimeError(f"CUDA: {status.name}")
    return results[0] if results else None
