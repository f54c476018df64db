"""The commands of a cluster as lists of words, for jobs and pods that run them."""

from typing import Final

from chess_snn.campaign.configuration.pace import ExecutionSettings
from chess_snn.devices import gpus_option

PATIENCE_S: Final = 60
"""Workers whose scheduler is gone end after this long, and with them the job that they are in.

A job's scheduler goes with its campaign. That of pods is a pod itself, and outlives a campaign that
was killed; so do its workers, until `resume` or kubectl deletes them all.
"""


def worker_words(address: str, execution: ExecutionSettings, certificates: str) -> list[str]:
    """`cluster worker` with the workers that ``execution`` asks for, behind the program's name."""
    words = [
        "cluster", "worker", address, "--certificates", certificates,
        "--device", execution.device, "--self-play-device", execution.self_play_device,
        "--patience-s", str(PATIENCE_S),
    ]
    if execution.gpus:
        words += ["--gpus", gpus_option(execution.gpus)]
    for name, value in (
        ("--workers", execution.workers),
        ("--workers-per-device", execution.workers_per_device),
        ("--memory-mib", execution.worker_memory_mib),
    ):
        if value:
            words += [name, str(value)]
    return words


def scheduler_words(host: str, port: int, certificates: str) -> list[str]:
    """`cluster scheduler`, likewise."""
    return [
        "cluster", "scheduler", "--host", host, "--port", str(port), "--certificates", certificates
    ]
