"""Checks of this machine: versions, GPUs, the disk, ports, engines and the kernel cache."""

import ctypes
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from chess_snn import nets
from chess_snn.caches import cache_root
from chess_snn.doctor import Finding, broken, note, ok
from chess_snn.errors import EngineError
from chess_snn.evaluation.engines.player import find_engine
from chess_snn.evaluation.engines.pool import engine_identity
from chess_snn.jit import kernel_folder
from chess_snn.kernel_files import damaged_files
from chess_snn.later import torch
from chess_snn.nets.gpu.cuda_kernel import has_cuda_bindings
from chess_snn.sources import torch_build

DRIVER: Final = Path("/proc/driver/nvidia/version")
LEAST_FREE_GIB: Final = 3.0
"""Disk space that the preset `smoke` and its servers are promised to fit in."""
_GIB: Final = 2**30
_LIBRARY: Final = ("torch", "numba", "zarr")
_ORCHESTRATION: Final = ("prefect", "mlflow", "distributed")


def check_all(home: Path, ports: tuple[int, ...]) -> Iterator[Finding]:
    """Check everything but ``--play``; campaigns and servers are kept in ``home``."""
    yield from check_versions()
    yield from check_gpus()
    yield check_disk(home)
    yield check_cache(cache_root(), kernel_folder())
    yield from check_ports(ports)
    yield check_stockfish()


def check_versions() -> Iterator[Finding]:
    """Python, and the packages that decide what works."""
    yield ok("Python", f"{sys.version.split()[0]}, {sys.prefix}")
    yield ok("packages", ", ".join(f"{name} {version(name)}" for name in _LIBRARY))
    try:
        yield ok("campaigns", ", ".join(f"{name} {version(name)}" for name in _ORCHESTRATION))
    except PackageNotFoundError as error:
        yield note(
            "campaigns", f"{error.name} is not installed",
            "pip install 'chess-snn[orchestration]' -c constraints.txt",
        )


def check_gpus() -> Iterator[Finding]:
    """Each GPU that torch sees, by a matrix product and a Triton kernel on it."""
    torch_version, build = torch_build()["__version__"], torch_build().get("cuda")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if build is None:
        if DRIVER.exists():
            yield broken(
                "CUDA", f"there is an NVIDIA driver, but torch {torch_version} is built "
                "without CUDA", "install a torch with CUDA, without our constraints.txt",
            )
        else:
            yield note("CUDA", f"no GPU is used: torch {torch_version} is for CPUs")
        return
    if not _has_driver_library() or not torch.cuda.is_available():
        hidden = "" if visible is None else f"; CUDA_VISIBLE_DEVICES={visible}"
        fact = f"torch {torch_version} is built for CUDA {build} and sees no GPU{hidden}"
        if DRIVER.exists() and visible != "":
            fault = nets.explain(_reason_for_no_gpu())
            yield broken("CUDA", f"{fact}: {fault.fact}", fault.remedy or (
                "look at nvidia-smi -L: a container needs --gpus all, and a GPU in MIG mode an "
                "instance, which CUDA_VISIBLE_DEVICES may name"
            ))
        else:
            yield note("CUDA", fact)
        return
    for index in range(torch.cuda.device_count()):
        yield check_gpu(index)


def _has_driver_library() -> bool:
    """Whether CUDA's driver can be loaded; without it torch, which takes seconds, sees no GPU."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def check_gpu(index: int) -> Finding:
    """Whether GPU ``index`` computes, and has what makes it fast."""
    subject = f"GPU {index}"
    if fault := nets.gpu_fault(f"cuda:{index}"):
        return broken(subject, fault.fact, fault.remedy)
    facts = torch.cuda.get_device_properties(index)
    fact = (
        f"{facts.name}, compute capability {facts.major}.{facts.minor}, "
        f"{facts.total_memory / _GIB:.0f} GiB, CUDA {torch.version.cuda}"
    )
    if not nets.has_triton():
        return note(
            subject, f"{fact}; without Triton its neurons are several times slower",
            "install the triton that this torch requires",
        )
    if not has_cuda_bindings():
        return note(
            subject, f"{fact}; without cuda.bindings it is slower in int8",
            "install the cuda-bindings that this torch requires",
        )
    return ok(subject, fact)


def _reason_for_no_gpu() -> Exception:
    """Return CUDA's error when torch asks for its first GPU."""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return error
    return RuntimeError("it has no GPU that this process may use")


def check_disk(folder: Path) -> Finding:
    """Whether ``folder`` may be written and has room."""
    nearest = _nearest_existing(folder)
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        return broken(
            "disk", f"{folder} cannot be written: {error.strerror}",
            "correct its permissions, or choose another folder with CHESS_SNN_HOME",
        )
    free_gib = shutil.disk_usage(nearest).free / _GIB
    fact = f"{free_gib:.1f} GiB free for {folder}"
    if free_gib < LEAST_FREE_GIB:
        return broken(
            "disk", fact, f"free some space, {LEAST_FREE_GIB:g} GiB are the least, or choose "
            "another place with CHESS_SNN_HOME",
        )
    return ok("disk", fact)


def check_cache(folder: Path, kernels: Path) -> Finding:
    """Whether compiled kernels can be kept in ``folder``, and those in ``kernels`` are whole."""
    if not os.access(_nearest_existing(folder), os.W_OK):
        return broken(
            "kernel cache", f"{folder} cannot be written",
            "set CHESS_SNN_CACHE to a folder that can; else kernels are compiled by every process",
        )
    if damaged := damaged_files(kernels):
        return note(
            "kernel cache", f"{len(damaged)} of its files are damaged, such as {damaged[0]}",
            "nothing, if it happens once: they are compiled again when they are needed; else check "
            "that disk",
        )
    return ok("kernel cache", str(folder))


def _nearest_existing(folder: Path) -> Path:
    """``folder``, or the nearest of its parents that is there."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if path.exists())


def check_ports(ports: tuple[int, ...]) -> Iterator[Finding]:
    """Whether `chess-snn up` could listen on ``ports``."""
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as error:
                yield note(
                    f"port {port}", f"cannot be listened on: {error.strerror}",
                    "chess-snn up takes others by --prefect-port and --mlflow-port",
                )
            else:
                yield ok(f"port {port}", "is free")


def check_stockfish() -> Finding:
    """Whether the engine is there and answers; without it some opponents are missing."""
    try:
        program = find_engine("stockfish")
    except EngineError:
        return note("Stockfish", "is not installed; only needed as an opponent", "make stockfish")
    try:
        return ok("Stockfish", f"{engine_identity(program)}, {program}")
    except EngineError as error:
        return broken("Stockfish", str(error), "make stockfish")
