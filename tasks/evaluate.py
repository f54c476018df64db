"""The evaluation task: one generation against every opponent."""

from prefect import task

from chess_snn.types import Json
from tasks import remote
from tasks.compute import run_all_on_devices


@task(name="evaluate", task_run_name="evaluate-{generation}")
def evaluate(
    directory: str, generation: int, opponents: list[str], num_threads: int
) -> list[Json]:
    """Play ``generation`` against each opponent, the matches side by side; their summaries."""
    calls = [(directory, generation, opponent, num_threads) for opponent in opponents]
    return run_all_on_devices(remote.play_evaluation_match, calls)
