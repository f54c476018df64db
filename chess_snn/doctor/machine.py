"""Cores, memory, GPUs, how the kernel shares them out, and disks.

Disks are those where campaigns go, and where compiled kernels are kept.
"""

import os
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psutil
import torch
import torch.distributed

from chess_snn.caches import cache_root
from chess_snn.cores import num_cores
from chess_snn.doctor.findings import Finding, broken, note, ok
from chess_snn.jit import kernel_folder
from chess_snn.kernel_files import damaged_files
from chess_snn.nets.gpu.cuda_kernel import has_cuda_bindings
from chess_snn.nets.gpu.gpu_faults import explain, gpu_fault
from chess_snn.nets.model.neuron import has_triton

PROC: Final = Path("/proc")
CGROUP: Final = Path("/sys/fs/cgroup")
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - only read

LEAST_MEMORY_GIB: Final = 2.0
"""A campaign of the preset `smoke` with two workers takes less."""
LEAST_SHARED_MIB: Final = 512
"""Of /dev/shm, through which NCCL's processes on a machine talk."""
LEAST_FILES: Final = 1024
"""Open files of a process; a campaign with a few workers stays far below."""

GOOD_FREE_SHARE: Final = 0.5
"""Of a GPU's memory; with less, another process computes there."""
_GIB: Final = 2**30
_MIB: Final = 2**20
LEAST_FREE_GIB: Final = 3.0
"""What the preset `smoke` and its servers are promised to fit in."""
GOOD_FREE_GIB: Final = 20.0
SLOW_SYNC_S: Final = 0.5
"""A shard waits for a dozen of these."""


def check_machine() -> list[Finding]:
    """What there is to compute with."""
    return [
        check_cores(), check_memory(), check_open_files(), *check_gpus(), check_nccl(),
    ]


def check_cores() -> Finding:
    """How many cores this process may use, by affinity and by a container's quota."""
    allowed = num_cores()
    quota = cpu_quota(CGROUP)
    if quota is not None and quota < allowed:
        return note(
            "cores", f"{allowed}, of which this container may keep {quota:.1f} busy",
            "raise the container's CPU limit, or set execution.workers to match it",
        )
    return ok("cores", f"{allowed} of {os.cpu_count()}")


def cpu_quota(cgroup: Path) -> float | None:
    """Cores that a container may keep busy, by version 2 of control groups; None: all."""
    try:
        limit, period = (cgroup / "cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if limit == "max" else int(limit) / int(period)


def check_memory() -> Finding:
    """What may still be taken, of the machine or of the container."""
    available = available_bytes(CGROUP)
    text = f"{available / _GIB:.1f} GiB available"
    if available < LEAST_MEMORY_GIB * _GIB:
        return broken(
            "memory", text,
            f"end other programs, or raise the container's limit: {LEAST_MEMORY_GIB:g} GiB are the "
            "least",
        )
    return ok("memory", text)


def available_bytes(cgroup: Path) -> int:
    """Memory that may be taken without swapping, of the machine or of the container."""
    available: int = psutil.virtual_memory().available
    try:
        limit = int((cgroup / "memory.max").read_text())
        used = int((cgroup / "memory.current").read_text()) - _cached_bytes(cgroup)
    except (OSError, ValueError):  # no container, or "max"
        return available
    return min(available, limit - used)


def _cached_bytes(cgroup: Path) -> int:
    """Page cache that counts as a container's use; the kernel frees it when memory is needed."""
    try:
        lines = (cgroup / "memory.stat").read_text().splitlines()
    except OSError:
        return 0
    facts = dict(line.split() for line in lines)
    return sum(int(facts.get(name, 0)) for name in ("inactive_file", "active_file"))


def check_open_files() -> Finding:
    """Whether enough files may be open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < LEAST_FILES:
        return broken("open files", f"{soft} a process", f"ulimit -n {LEAST_FILES}")
    return ok("open files", "no limit" if soft == resource.RLIM_INFINITY else f"{soft} a process")


def check_gpus() -> Iterator[Finding]:
    """Each GPU that torch sees, by a matrix product and a Triton kernel on it."""
    build = torch.version.cuda
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    hidden = "" if visible is None else f"; CUDA_VISIBLE_DEVICES={visible}"
    if build is None:
        if _has_nvidia_driver():
            yield broken(
                "CUDA", f"there is an NVIDIA driver, but torch {torch.__version__} is built "
                "without CUDA", "install a torch with CUDA, without our constraints.txt",
            )
        else:
            yield note("CUDA", f"no GPU is used: torch {torch.__version__} is for CPUs")
        return
    if not torch.cuda.is_available():
        fact = f"torch {torch.__version__} is built for CUDA {build} and sees no GPU{hidden}"
        if _has_nvidia_driver() and visible != "":
            fault = explain(_reason_for_no_gpu())
            yield broken("CUDA", f"{fact}: {fault.fact}", fault.remedy or (
                "look at nvidia-smi -L: a container needs --gpus all, and a GPU in MIG mode an "
                "instance, which CUDA_VISIBLE_DEVICES may name"
            ))
        else:
            yield note("CUDA", fact)
        return
    for index in range(torch.cuda.device_count()):
        yield check_gpu(index, hidden)


def check_gpu(index: int, hidden: str) -> Finding:
    """Whether GPU ``index`` computes, and whether other processes leave it enough memory."""
    subject = f"GPU {index}"
    if fault := gpu_fault(f"cuda:{index}"):
        return broken(subject, fault.fact, fault.remedy)
    facts = torch.cuda.get_device_properties(index)
    free, total = torch.cuda.mem_get_info(index)
    fact = (
        f"{facts.name}, compute capability {facts.major}.{facts.minor}, {free / _GIB:.0f} of "
        f"{total / _GIB:.0f} GiB free, CUDA {torch.version.cuda}{hidden}"
    )
    if not has_triton():
        return note(
            subject, f"{fact}; without Triton its neurons are several times slower",
            "install the triton that this torch requires",
        )
    if not has_cuda_bindings():
        return note(
            subject, f"{fact}; without cuda.bindings it is slower in int8",
            "install the cuda-bindings that this torch requires",
        )
    return judge_gpu(subject, facts.name, fact, free / total)


def judge_gpu(subject: str, name: str, fact: str, free_share: float) -> Finding:
    """Whether the GPU ``name``, which computes and has so much memory free, is a whole one."""
    if free_share < GOOD_FREE_SHARE:
        return note(
            subject, f"{fact}; other processes hold the rest",
            "nvidia-smi lists them: end those that you do not need",
        )
    if " MIG " in name:
        return note(
            subject, f"{fact}; CUDA gives a process one MIG instance only",
            "start a worker for each by chess-snn cluster worker, with one instance in "
            "CUDA_VISIBLE_DEVICES",
        )
    return ok(subject, fact)


def _reason_for_no_gpu() -> Exception:
    """What CUDA says when torch asks for its first GPU."""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:
        return error
    return RuntimeError("it has no GPU that this process may use")


def check_nccl() -> Finding:
    """Whether several GPUs can train together."""
    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        return note("NCCL", "not in this torch; training takes one device, or gloo on CPUs")
    version = ".".join(map(str, torch.cuda.nccl.version()))  # type: ignore[no-untyped-call]
    if torch.cuda.device_count() > 1 and _SHARED_MEMORY.exists():
        shared_mib = shutil.disk_usage(_SHARED_MEMORY).total // _MIB
        if shared_mib < LEAST_SHARED_MIB:
            return broken(
                "NCCL", f"{version}, and {_SHARED_MEMORY} has {shared_mib} MiB only",
                "start the container with --ipc=host or --shm-size=1g",
            )
    return ok("NCCL", version)


def _has_nvidia_driver() -> bool:
    return (PROC / "driver/nvidia/version").exists()


def check_storage(home: Path) -> list[Finding]:
    """The disk of ``home``, where deployed campaigns and services are, and the kernels' cache."""
    return [check_disk("disk", home), check_cache(cache_root(), kernel_folder())]


def check_disk(subject: str, folder: Path) -> Finding:
    """Whether ``folder`` may be written, has room, and keeps what is written."""
    nearest = nearest_existing(folder)
    free_gib = shutil.disk_usage(nearest).free / _GIB
    fact = f"{free_gib:.1f} GiB free for {folder}"
    try:
        seconds = sync_seconds(nearest)
    except OSError as error:
        return broken(
            subject, f"{folder} cannot be written: {error.strerror}",
            "correct its permissions, or choose another folder with CHESS_SNN_HOME",
        )
    if free_gib < LEAST_FREE_GIB:
        return broken(
            subject, fact,
            f"free some space, {LEAST_FREE_GIB:g} GiB are the least, or choose another place with "
            "CHESS_SNN_HOME",
        )
    fact += f", a file is safe on it after {1000 * seconds:.0f} ms"
    if seconds > SLOW_SYNC_S:
        return note(subject, fact, "choose a faster disk with CHESS_SNN_HOME")
    if free_gib < GOOD_FREE_GIB:
        return note(subject, fact, "campaigns of many hours want more")
    return ok(subject, fact)


def check_cache(folder: Path, kernels: Path) -> Finding:
    """Whether compiled kernels can be kept in ``folder``, and those in ``kernels`` are whole."""
    nearest = nearest_existing(folder)
    if not os.access(nearest, os.W_OK):
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


def nearest_existing(folder: Path) -> Path:
    """``folder``, or the nearest of its parents that is there."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if path.exists())


def sync_seconds(folder: Path) -> float:
    """How long it takes until a small file is on the disk.

    Raises:
        OSError: it cannot be written.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        begun = time.perf_counter()
        file.write(b"chess-snn")
        file.flush()
        os.fsync(file.fileno())
        return time.perf_counter() - begun
