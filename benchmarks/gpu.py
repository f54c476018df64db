"""Every figure that needs a GPU; without one, ``--device cpu --quick`` runs the same code.

Needs torch and what ``pyproject.toml`` lists as dependencies, but neither Prefect, Dask nor MLflow,
and runs from a clone that is not installed. SpikingJelly and snnTorch are compared with if they are
installed.
"""

import platform
import shutil
import subprocess
import traceback
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

import torch
import typer

from benchmarks.gpu_bench import GpuBench
from benchmarks.gpu_network import fused, inference, neurons, peers
from benchmarks.gpu_play import self_play, training
from benchmarks.harness import Quick, Report, benchmark, chosen_parts
from chess_snn.errors import UsageError

_PACKAGES: Final = ("torch", "triton", "numpy", "numba")
_GPU_FACTS: Final = (
    "name,driver_version,clocks.max.sm,clocks.max.mem,pcie.link.gen.current,mig.mode.current"
)


def facts(bench: GpuBench) -> None:
    """Note the machine and its software, and add the device's peaks."""
    installed = {each.metadata["Name"]: each.version for each in metadata.distributions()}
    versions = ", ".join(f"{name} {installed.get(name, 'missing')}" for name in _PACKAGES)
    cudnn = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
    bench.report.note(f"Python {platform.python_version()}, {versions}, cuDNN {cudnn}, "
                      f"C compiler {shutil.which('cc')}")
    if bench.on_gpu and shutil.which("nvidia-smi"):
        told = subprocess.run(
            ["nvidia-smi", f"--query-gpu={_GPU_FACTS}", "--format=csv"], capture_output=True,
            text=True, check=False, timeout=30,
        )
        for line in (told.stdout or told.stderr).splitlines():
            bench.report.note(line)
    _ = bench.peaks


PARTS: Final = {
    "facts": facts, "neurons": neurons, "inference": inference, "peers": peers,
    "training": training, "self-play": self_play, "fused": fused,
}


def run(
    report: Report, quick: Quick = False,
    device: Annotated[str, typer.Option(help="cuda, cuda:1 or cpu.")] = "cuda",
    part: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(PARTS)}; all by default.")
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Folder for traces that Perfetto can show.")
    ] = None,
) -> None:
    """Every figure that needs a GPU: neurons, inference, training, self-play.

    A part that fails does not stop the others. Figures are written to --json-file as they come. All
    parts take about 15 minutes, self-play the longest: 5.

    python -m benchmarks gpu --part self-play --json-file self-play.json
    """
    parts = chosen_parts(PARTS, part)
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"--device {device}: {str(error).splitlines()[0]} (torch sees "
            f"{torch.cuda.device_count()} GPUs); without one: --device cpu --quick"
        ) from error
    if failed := _run_parts(GpuBench(report, torch.device(device), quick, traces), parts):
        raise UsageError(f"failed: {', '.join(failed)}; the errors are above")


command = benchmark("gpu", run)


def _run_parts(bench: GpuBench, parts: Mapping[str, Callable[[GpuBench], None]]) -> list[str]:
    """Run parts one after the other; return the names of those that failed."""
    failed = []
    device = torch.cuda.get_device_name(bench.device) if bench.on_gpu else "no GPU"
    bench.report.note(f"torch {torch.__version__}, {device}")
    for name, measure in parts.items():
        bench.report.progress(name)
        try:
            measure(bench)
        except Exception as error:  # noqa: BLE001 - the machine is lent for minutes: go on
            traceback.print_exc()
            bench.report.note(f"{name} FAILED: {type(error).__name__}: {error}")
            failed.append(name)
    return failed
