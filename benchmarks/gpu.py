"""Every figure that needs a GPU; without one, ``--device cpu --quick`` runs the same code.

Needs torch and what ``pyproject.toml`` lists as dependencies, but neither Prefect, Dask nor MLflow.
SpikingJelly and snnTorch are compared with if installed. ``python benchmarks/gpu.py`` is
``python -m benchmarks gpu``; either runs from a clone that is not installed.
"""

import sys
import traceback
from pathlib import Path
from typing import Annotated, Final

if __name__ == "__main__":
    # In place of this folder, whose modules have common names.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

import torch
import typer

from benchmarks.gpu_bench import GpuBench, facts, neurons
from benchmarks.gpu_network import fused, inference, peers
from benchmarks.gpu_play import self_play, training
from benchmarks.gpu_steps import STEPS, pack, run_tasks, tasks_of
from benchmarks.report import Quick, Report, benchmark
from chess_snn.errors import UsageError

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
    step: Annotated[
        int | None, typer.Option(help="1, 2 or 3: a third of a first run, at most ten minutes.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results, packed into FOLDER.tar.gz.")
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(help="Folder for traces that Perfetto can show.")
    ] = None,
) -> None:
    """Every figure that needs a GPU: neurons, inference, training, self-play.

    A part that fails does not stop the others. Figures are written as they come. Beside a figure
    stands what `benchmarks/device_model.py` predicts.

    A step runs each of its parts in a process of its own, with a time limit: 1 the tests, a quick
    run, neurons and inference; 2 self-play, training and other libraries; 3 fused kernels and a
    short learning run.

    python benchmarks/gpu.py --step 1 --out results-1
    """
    if unknown := [name for name in part or () if name not in PARTS]:
        raise UsageError(f"--part must be one of {', '.join(PARTS)}, got {unknown[0]!r}")
    if step is not None and (step not in STEPS or part or quick or traces):
        raise UsageError(f"--step must be one of {', '.join(map(str, STEPS))}, without --part, "
                         "--quick and --traces")
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(
            f"--device {device}: {str(error).splitlines()[0]} (torch sees "
            f"{torch.cuda.device_count()} GPUs); without one: --device cpu --quick"
        ) from error
    if step is not None:
        failed = run_tasks(report, tasks_of(step, device), out or Path(f"gpu-step-{step}"))
    else:
        if out is not None and report.json_file is None:
            report.json_file = out / "gpu.json"
        bench = GpuBench(report, torch.device(device), quick, traces)
        failed = _run_parts(bench, part or list(PARTS))
        if out is not None:
            pack(out)
    if failed:
        raise UsageError(f"failed: {', '.join(failed)}; the errors are above")


command = benchmark("gpu", run)


def _run_parts(bench: GpuBench, names: list[str]) -> list[str]:
    """Run parts one after the other; return the names of those that failed."""
    failed = []
    name = torch.cuda.get_device_name(bench.device) if bench.on_gpu else "no GPU"
    bench.report.note(f"torch {torch.__version__}, {name}")
    for name in names:
        bench.report.progress(name)
        try:
            PARTS[name](bench)
        except Exception as error:  # noqa: BLE001 - the machine is lent for minutes: go on
            traceback.print_exc()
            bench.report.note(f"{name} FAILED: {type(error).__name__}: {error}")
            failed.append(name)
    return failed


if __name__ == "__main__":
    from chess_snn.cli import main

    sys.argv[1:1] = ["bench", "gpu"]
    main()
