"""A campaign that is watched, as plain lines: one for each thing that changes."""

from collections.abc import Iterator
from typing import Final

from chess_snn.campaign.store.plans import describe_length
from chess_snn.campaign.viewing.live import summary
from chess_snn.campaign.viewing.watching import CampaignView
from chess_snn.campaign.viewing.writer import WriterState
from chess_snn.cli.campaign_tables import duration, iteration_line, match_line

_MORE_GAMES: Final = 1.5
"""Workers are told of again after so many times the games."""


class WatchLines:
    """Remembers what has been told of one campaign."""

    def __init__(self) -> None:
        self._has_begun = False
        self._writer = ""
        self._num_iterations = 0
        self._alarms: set[tuple[str, int]] = set()
        self._stages: dict[tuple[int, str], int] = {}
        self._has_finished = False
        self._workers: list[str] = []
        self._num_games = 0

    def news(self, view: CampaignView) -> Iterator[str]:
        """What is new in ``view``; at first the state, the newest iteration and the alarms."""
        if not self._has_begun:
            yield f"campaign {view.folder.path}: {describe_length(view.folder)}"
        if not view.is_finished and (told := describe_writer(view)) != self._writer:
            self._writer = told
            yield told
        yield from self._new_iterations(view)
        yield from self._new_alarms(view)
        yield from self._new_stages(view)
        yield from self._new_workers(view)
        if view.is_finished and not self._has_finished:
            yield from map(match_line, view.final_matches)
            yield f"finished: {len(view.receipts)} iterations in {duration(view.elapsed_s)}"
        self._has_finished = view.is_finished
        self._has_begun = True

    def _new_iterations(self, view: CampaignView) -> Iterator[str]:
        first = self._num_iterations if self._has_begun else max(0, len(view.rows) - 1)
        yield from map(iteration_line, view.rows[first:])
        # Fewer where receipts were removed, so that iterations are done again.
        self._num_iterations = len(view.rows)

    def _new_alarms(self, view: CampaignView) -> Iterator[str]:
        for alarm in view.alarms:
            if (alarm.name, alarm.since_iteration) not in self._alarms:
                yield f"ALARM {alarm}"
        self._alarms = {(alarm.name, alarm.since_iteration) for alarm in view.alarms}

    def _new_stages(self, view: CampaignView) -> Iterator[str]:
        for stage in view.stages:
            if self._stages.get((stage.iteration, stage.name)) != stage.done:
                yield str(stage)
        self._stages = {(stage.iteration, stage.name): stage.done for stage in view.stages}


    def _new_workers(self, view: CampaignView) -> Iterator[str]:
        """All together where one has come or gone, or they have done half as much again."""
        workers = view.live.workers if view.live is not None else ()
        names, games = [w.name for w in workers], sum(w.games for w in workers)
        if workers and (names != self._workers or games > _MORE_GAMES * self._num_games):
            self._num_games = games
            yield summary(workers)
            yield from map(str, workers)
        self._workers = names


def describe_writer(view: CampaignView) -> str:
    """Whether the campaign is being run, and by whom."""
    if view.writer is None:
        return "not begun: no process has run it yet"
    if view.writer.state is WriterState.STOPPED:
        return f"{view.writer}; go on with it: chess-snn campaign resume {view.folder.path}"
    return str(view.writer)
