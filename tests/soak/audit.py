"""Proofs about a finished campaign, beside an undisturbed reference and python-chess."""

import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from mlflow.tracking import MlflowClient

from chess_snn.campaign import CampaignFolder, read_receipt, read_receipts
from chess_snn.data import GameRecords, read_shard
from chess_snn.errors import ChessSnnError
from chess_snn.games.chess import CHESS_SPEC, move_of_action, to_board
from chess_snn.tasks.tracking import EXPERIMENT, MODEL_NAME
from chess_snn.tasks.tracking.recorder import MARKER_METRIC
from tests.small_campaigns import assert_same_campaign

from .report import Check

CHECKMATE = CHESS_SPEC.terminations.index("checkmate")
PREFECT_DATABASE = "services/prefect.db"


def audit(directory: Path, reference: Path, tracking_uri: str, log: Path) -> list[Check]:
    """Check everything that a campaign must have kept.

    Args:
        directory: the campaign.
        reference: a campaign of the same settings and seed without faults.
        tracking_uri: of the MLflow server it logged to.
        log: the output of ``chess-snn verify`` is appended to it.
    """
    return [
        _check("the games, networks and matches of the undisturbed reference",
               lambda: assert_same_campaign(directory, reference)),
        _check("every game is legal", lambda: assert_legal(directory)),
        _check("chess-snn verify passes", lambda: _assert_verified(directory, log)),
        _check("Prefect has no run left open", lambda: assert_prefect_is_closed(directory)),
        _check("MLflow has everything once", lambda: assert_tracked(directory, tracking_uri)),
    ]


def _check(name: str, prove: Callable[[], None]) -> Check:
    try:
        prove()
    except (AssertionError, ChessSnnError) as error:
        return Check(name, " ".join(str(error).split())[:500] or "it does not hold")
    return Check(name)


def verify(directory: Path, log: Path, *options: str) -> int:
    """Run ``chess-snn verify`` on the campaign; its exit code, 0 if all is whole."""
    command = [sys.executable, "-m", "chess_snn", "verify", str(directory), *options]
    with log.open("ab") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    return done.returncode


def repair(directory: Path, log: Path) -> list[str]:
    """Quarantine corrupt data so that the next run rebuilds it; what was done.

    A campaign rebuilds what it needs. It needs nothing more of finished iterations, so their
    receipts are deleted, as the documentation says.
    """
    code = verify(directory, log, "--repair")
    done = [f"chess-snn verify --repair ended with code {code}"] if code else []
    folder = CampaignFolder.open(directory)
    for iteration in range(folder.config.campaign.iterations):
        path = folder.receipt(iteration)
        if not path.exists():
            continue
        receipt = read_receipt(folder, iteration)
        needed = [folder.checkpoint(receipt.training.generation)]
        needed += [folder.path / "games" / shard.name for shard in receipt.shards]
        if not all(path.exists() for path in needed):
            path.unlink()
            done.append(f"deleted receipts/{path.name}")
    return done


def _assert_verified(directory: Path, log: Path) -> None:
    assert (code := verify(directory, log)) == 0, f"it ended with code {code}; see {log}"


def assert_legal(directory: Path) -> None:
    """python-chess, which does not know our rules, plays every game again."""
    for path in sorted((directory / "games").glob("iter-*/shard-*")):
        records, _ = read_shard(path)
        for game in range(records.num_games):
            _assert_game_is_legal(records, game, f"{path}, game {game}")


def _assert_game_is_legal(records: GameRecords, game: int, name: str) -> None:
    first, end = records.game_offsets[game : game + 2]
    board = to_board(records.states[first])
    for row in range(first, end):
        stored = to_board(records.states[row])
        assert stored.epd() == board.epd(), f"{name}: ply {row - first} is not as by the rules"
        move = move_of_action(board, int(records.actions[row]))
        assert board.is_legal(move), f"{name}: {move.uci()} is illegal in {board.fen()}"
        board.push(move)
    is_mate = records.terminations[game] == CHECKMATE
    assert is_mate == board.is_checkmate(), f"{name}: a mate differs"
    if is_mate:
        outcome = -1 if board.turn else 1
        assert records.outcomes_white[game] == outcome, f"{name}: the winner differs"


def assert_prefect_is_closed(directory: Path) -> None:
    """From the database itself: its server ended with the campaign."""
    address = f"file:{directory / PREFECT_DATABASE}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as database:
        for table in ("flow_run", "task_run"):
            rows = database.execute(f"SELECT name, state_type FROM {table}").fetchall()
            assert rows, f"no {table} at all"
            still = [row for row in rows if row[1] in ("PENDING", "RUNNING", "CANCELLING")]
            assert not still, f"{table}: {still}"


def assert_tracked(directory: Path, tracking_uri: str) -> None:
    """Each metric and each network of each iteration is there once."""
    folder = CampaignFolder.open(directory)
    iterations = list(range(len(read_receipts(folder))))
    client = MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    runs = client.search_runs(
        [experiment.experiment_id], f"tags.`chess_snn.campaign_id` = '{folder.campaign_id}'"
    )
    assert len(runs) == 1, f"{len(runs)} runs of the campaign"
    run = runs[0]
    assert run.info.status == "FINISHED"
    for metric in (MARKER_METRIC, *run.data.metrics):
        steps = [point.step for point in client.get_metric_history(run.info.run_id, metric)]
        twice = [step for step, times in Counter(steps).items() if times > 1]
        assert not twice, f"{metric} has the steps {twice} more than once"
        if metric == MARKER_METRIC:
            assert sorted(steps) == iterations, f"recorded are {sorted(steps)}"
    versions = client.search_model_versions(
        f"name = '{MODEL_NAME}' and tags.campaign_id = '{folder.campaign_id}'"
    )
    generations = sorted(int(version.tags["generation"]) for version in versions)
    assert generations == [i + 1 for i in iterations], f"registered are {generations}"
