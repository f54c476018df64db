"""A campaign as JSON for the page: its state, curves, alarms and games, from its folder alone.

It works as ``chess-snn watch`` does: nothing is written and no lock is taken.
"""

import math
import threading
import time
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn.campaign.store.collection import CollectedGame, GameCollection, games_of_iteration
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import campaign_length
from chess_snn.campaign.viewing.figures import shown_at
from chess_snn.campaign.viewing.lines import duration, match_line
from chess_snn.campaign.viewing.recorded_games import game_positions
from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.types import Json

_LOOK_PERIOD_S: Final = 1.0
"""Browsers that ask more often get the same answer."""
_MOST_POINTS: Final = 400
"""Iterations of a curve; of a longer campaign every second or third is shown, the last always."""
_MOST_GAMES: Final = 60
"""Newest games that are listed."""
_GIB: Final = 2**30


class CampaignPage:
    """One campaign, read again and again. Its methods may be called in any thread."""

    def __init__(self, directory: Path) -> None:
        """Open the campaign in ``directory``.

        Raises:
            CampaignError: there is none.
        """
        self.folder = CampaignFolder.open(directory)
        self._watch = CampaignWatch(directory)
        self._lock = threading.Lock()
        self._next_s, self._last = 0.0, Json()

    def state(self) -> Json:
        """The campaign now.

        Raises:
            CampaignError: its folder is gone, or cannot be read.
            CorruptDataError: a file of it is damaged.
        """
        with self._lock:
            if time.monotonic() >= self._next_s:
                self._last = _describe(self._watch.look())
                self._next_s = time.monotonic() + _LOOK_PERIOD_S
            return self._last

    def games(self) -> Json:
        """The newest recorded games, of the newest iteration that has any; newest first."""
        collection, iteration = self._newest()
        listed: list[Json] = []
        before = 0 if collection is None else collection.num_games
        for shard in reversed(() if collection is None else collection.shards):
            records, _ = shard.read()
            before -= shard.num_games
            assert collection is not None
            endings, plies = collection.endings(records), np.diff(records.game_offsets)
            listed += [
                {
                    "number": before + index + 1, "plies": int(plies[index]),
                    "ending": endings[index].replace("_", " "),
                    "result": _result(collection, int(records.outcomes_white[index])),
                }
                for index in reversed(range(records.num_games))
            ]
            if len(listed) >= _MOST_GAMES:
                break
        generation = collection.shards[0].generation if collection and collection.shards else None
        return {"iteration": iteration, "generation": generation, "games": listed[:_MOST_GAMES]}

    def game(self, iteration: int, number: int) -> Json:
        """One recorded game: its positions, and the move that follows each.

        Raises:
            UsageError: there is none of that number.
            CorruptDataError: its shard is damaged.
        """
        collection = games_of_iteration(self.folder, iteration)
        found = collection.game(number)
        return {
            "iteration": iteration, "number": number, "kind": collection.spec.name,
            "generation": found.shard.generation,
            "ending": collection.ending(found.records, found.index).replace("_", " "),
            "result": _result(collection, int(found.records.outcomes_white[found.index])),
            **_positions(collection, found),
        }

    def _newest(self) -> tuple[GameCollection | None, int | None]:
        folders = sorted((self.folder.path / "games").glob("iter-[0-9]*"), reverse=True)
        for folder in folders:
            iteration = int(folder.name.removeprefix("iter-"))
            collection = games_of_iteration(self.folder, iteration)
            if collection.shards:
                return collection, iteration
        return None, None


def _describe(view: CampaignView) -> Json:
    folder = view.folder
    promotions = [str(r.promotion) for r in view.receipts if r.promotion is not None]
    return {
        "name": folder.name,
        "length": str(campaign_length(folder)),
        "state": view.state_text,
        "is_running": view.is_running,
        "is_finished": view.is_finished,
        "progress": view.progress,
        "elapsed": duration(view.elapsed_s),
        "left": None if view.is_finished or view.seconds_left is None
                else duration(view.seconds_left),
        "champion": view.champion,
        "iterations": len(view.receipts),
        "last_promotion": promotions[-1] if promotions else None,
        "alarms": [
            {"name": a.name, "since": a.since_iteration, "saw": a.saw, "advice": a.advice}
            for a in view.alarms
        ],
        "faults": list(view.faults),
        "stages": [{"text": str(stage), "share": stage.share} for stage in view.stages],
        "workers": [
            {
                "name": worker.name, "doing": worker.doing or "idle",
                "games_per_s": worker.games_per_s, "cores": worker.cores,
                "memory_gib": worker.memory_bytes / _GIB, "gpu": worker.gpu_text,
            }
            for worker in view.workers
        ],
        "disk_gib": view.disk.used_bytes / _GIB,
        "free_gib": view.disk.free_bytes / _GIB,
        "cores": None if view.processes is None else view.processes.cores,
        "final_matches": [match_line(match) for match in view.final_matches],
        "ladder": _ladder(view),
        "curves": _curves(view),
    }


def _ladder(view: CampaignView) -> Json | None:
    """The newest rating on the shipped ladder; None if there is none."""
    rated = [row for row in view.rows if row.get("ladder_elo") is not None]
    names = {"ladder_elo": "elo", "ladder_elo_low": "low", "ladder_elo_high": "high",
             "generation": "generation"}
    return {names[column]: rated[-1][column] for column in names} if rated else None


def _curves(view: CampaignView) -> list[Json]:
    """Return the measured curves: points (iteration, value), and intervals where there are any."""
    step = max(1, math.ceil(len(view.rows) / _MOST_POINTS))
    last = len(view.rows) - 1
    shown = [row for i, row in enumerate(view.rows) if (last - i) % step == 0]
    shown_figures = shown_at(view.folder.config, "watch")
    wanted = [(figure.title, figure.name, figure.form) for figure in shown_figures]
    curves = []
    for label, column, form in wanted:
        rows = [row for row in shown if row.get(column) is not None]
        if rows:
            low, high = f"{column}_low", f"{column}_high"
            band = [[row["iteration"], row[low], row[high]] for row in rows
                    if row.get(low) is not None and row.get(high) is not None]
            values = [row[column] for row in rows] + [end for _, *ends in band for end in ends]
            curves.append({
                "label": label,
                "column": column,
                "newest": format(rows[-1][column], form),
                "points": [[row["iteration"], row[column]] for row in rows],
                "band": band,
                "from": format(min(values), form),
                "to": format(max(values), form),
            })
    return curves


def _result(collection: GameCollection, outcome_white: int) -> str:
    if collection.spec.num_players == 1:
        return ""
    return {1: "1-0", 0: "½-½", -1: "0-1"}[outcome_white]


def _positions(collection: GameCollection, found: CollectedGame) -> Json:
    records = found.records
    rows = slice(*records.game_offsets[found.index : found.index + 2])
    if rows.start == rows.stop:
        raise UsageError(f"game {found.number} of {collection.name} has no move")
    shown = game_positions(
        get_game(collection.spec.name), records.states[rows], records.actions[rows]
    )
    return {"positions": shown.positions, "names": shown.names, "moves": shown.moves}
