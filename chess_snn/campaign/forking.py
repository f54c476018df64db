"""Forks of a campaign, and its extension.

A fork is a new campaign that continues from an iteration of another one, with its own settings. It
has everything before that iteration from its parent: games, networks, plans, matches, receipts.
Big things are hard links where the disk has them, so that a fork takes next to no room.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.artifacts.artifact import Stored
from chess_snn.campaign.configuration.loading import (
    Setting,
    changed_config,
    config_values,
    flat_values,
)
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.generations import read_generation
from chess_snn.campaign.store.lock import campaign_lock
from chess_snn.campaign.store.notes import (
    note_removal,
    read_notes,
    read_removals,
    refuse_removed,
    write_note,
)
from chess_snn.campaign.store.origin import Origin
from chess_snn.campaign.store.plans import (
    S_PER_HOUR,
    Length,
    campaign_length,
    read_plans,
    write_extension,
)
from chess_snn.campaign.store.receipts import (
    num_finished_iterations,
    read_receipt,
    recorded_seconds,
)
from chess_snn.campaign.strength.champions import read_hand_promotions
from chess_snn.campaign.viewing.live import WriterState, find_writer, is_reporting
from chess_snn.data import link_folder, write_text
from chess_snn.errors import CampaignError, CampaignLockedError, UsageError
from chess_snn.wording import counted

_OF_THE_START = ("campaign.game", "net.", "supervised.")
"""Settings that made generation 0, and every network since."""
_MAY_CHANGE = ("net.precision",)
"""Settings among those."""


def fork_config(
    parent: CampaignFolder, at: int, settings: Sequence[Setting] = ()
) -> CampaignConfig:
    """The settings of a fork of ``parent`` that goes its own way from iteration ``at`` on.

    They are the parent's, with its present length.

    Raises:
        CampaignError: the parent has not finished the iterations before, or has lost the network.
        UsageError: a setting may not change in a fork, or nothing is left to do.
        ConfigError: an unknown setting, or a value out of range.
    """
    finished = num_finished_iterations(parent)
    if not 0 <= at <= finished:
        raise CampaignError(
            f"{parent.path} cannot be forked at iteration {at}: "
            + (f"it has finished {counted(finished, 'iteration')}; fork it at 0 to {finished}"
               if finished else "it has not finished any; fork it at 0")
        )
    refuse_removed(parent, at)
    if not parent.checkpoint(at).exists():
        raise CampaignError(
            f"{parent.path} has no generation {at} to go on from; run it first: chess-snn campaign "
            f"resume {parent.path}"
        )
    length, run = campaign_length(parent), parent.config.campaign
    before = replace(
        parent.config, campaign=replace(run, iterations=length.iterations, hours=length.hours),
    )
    config = changed_config(before, settings)
    _check_changes(parent, at, before, config)
    run = config.campaign
    elapsed_s = read_receipt(parent, at - 1).elapsed_s if at else 0.0
    if elapsed_s >= run.hours * S_PER_HOUR if run.hours else at >= run.iterations:
        raise UsageError(
            f"a fork of {parent.path} at iteration {at} has nothing left to do; let it last "
            "longer: --set campaign.iterations=… (or campaign.hours)"
        )
    return config


def fork_campaign(
    parent: CampaignFolder, path: Path, at: int, config: CampaignConfig
) -> CampaignFolder:
    """Make a fork of ``parent``, which may be running, in ``path``, whole or not at all.

    ``path`` is missing or empty; ``at`` is the first iteration that the fork plays itself;
    ``config`` is of :func:`fork_config`.

    Raises:
        CampaignError: the folder holds something already, or cannot be written.
        CorruptDataError: something that it takes along is damaged; nothing is made.
    """
    known = parent.origin
    origin = Origin(
        reference=str(parent.path), folder=str(parent.path), campaign=parent.name,
        campaign_id=parent.campaign_id, generation=at, forked_at=at,
        weights_digest=str(read_generation(parent, at).meta["weights_digest"]),
        games=() if known is None else known.games,
        positions=0 if known is None else known.positions,
    )

    def fill(fork: CampaignFolder) -> None:
        for stored in _taken_along(parent, origin):
            source, target = stored.path(parent), stored.path(fork)
            if stored.artifact is table.CHECKPOINT:
                read_generation(parent, int(stored.key[0]))
            if stored.artifact.is_folder:
                link_folder(source, target)
            else:
                write_text(target, source.read_text(encoding="utf-8"))
        _take_notes(parent, fork, origin)

    return CampaignFolder.create(path, config, origin, fill)


def _check_changes(
    parent: CampaignFolder, at: int, before: CampaignConfig, after: CampaignConfig
) -> None:
    old, new = (flat_values(config_values(config)) for config in (before, after))
    changed = [name for name in new if new[name] != old[name]]
    fixed = [
        f"{name} is {old[name]!r}" for name in changed
        if name.startswith(_OF_THE_START) and name not in _MAY_CHANGE
    ]
    if fixed:
        raise UsageError(
            f"a fork keeps the network and the game of its parent: {', '.join(fixed)} in "
            f"{parent.path}; leave that out, or start another campaign: chess-snn campaign start"
        )


def _taken_along(parent: CampaignFolder, origin: Origin) -> Iterator[Stored]:
    """Artifacts of earlier iterations that a fork takes along."""
    for artifact in table.ARTIFACTS:
        for stored in table.all_stored(parent, artifact) if artifact.is_forked else ():
            if origin.source_of(stored.name) is not None:
                yield stored
    assert origin.forked_at is not None
    for number, choice in enumerate(read_hand_promotions(parent)):
        if choice.num_finished > origin.forked_at:
            break
        yield Stored(table.HAND_PROMOTION, (number,))


def _take_notes(parent: CampaignFolder, fork: CampaignFolder, origin: Origin) -> None:
    """Note what the parent does without, and why."""
    removed = [
        entry for name, entry in read_removals(parent).items() if _is_taken(origin, name)
    ]
    if removed:
        note_removal(fork, removed)
    for note in read_notes(parent):
        if _is_taken(origin, note.path):
            write_note(fork, fork.path / note.path, note.event, note.why)


def _is_taken(origin: Origin, name: str) -> bool:
    folders = {f"games/{shard.partition('/')[0]}" for shard in origin.games}
    return origin.is_forked(name) or name in folders or name.removeprefix("games/") in origin.games


def extend_campaign(
    folder: CampaignFolder, *, iterations: int | None = None, hours: float | None = None
) -> bool:
    """Let the campaign last ``iterations`` or ``hours`` in all; one of them is given.

    Plans that are committed stay. Those to come divide the rest of its progress among what is left;
    see :func:`chess_snn.campaign.store.plans.next_plan`.

    Returns:
        Whether it is running, so that it finds the new length at its next iteration.

    Raises:
        UsageError: the new length is not above the present one, or both or none are given.
        CampaignError: it is running on another host.
        CorruptDataError: a plan or an earlier extension is damaged.
    """
    before = find_writer(folder)
    if before is not None and before.state is WriterState.ELSEWHERE and is_reporting(folder):
        raise _runs_elsewhere(folder, str(before))
    try:
        with campaign_lock(folder):
            _extend(folder, iterations, hours)
    except CampaignLockedError as error:
        writer = find_writer(folder)
        if writer is None or writer.state is not WriterState.RUNNING:
            raise _runs_elsewhere(folder, str(writer or error)) from error
        _extend(folder, iterations, hours)
        return True
    return False


def _extend(folder: CampaignFolder, iterations: int | None, hours: float | None) -> None:
    length, plans = _checked(folder, iterations, hours), read_plans(folder)
    progress = 0.0
    if plans:
        # The end of the last iteration is a guess by the clock, but for the end of the campaign.
        is_known = not campaign_length(folder).hours or plans[-1].progress_last == 1.0
        progress = plans[-1].progress_last if is_known else plans[-1].progress_first
    write_extension(folder, length, progress)


def _checked(folder: CampaignFolder, iterations: int | None, hours: float | None) -> Length:
    now = campaign_length(folder)
    if (iterations is None) == (hours is None):
        raise UsageError("an extension has either --iterations or --hours; give one of them")
    if hours is not None:
        length = Length(folder.config.campaign.iterations, hours)
        done_s = now.hours * S_PER_HOUR or recorded_seconds(folder)
        if hours * S_PER_HOUR <= done_s:
            raise UsageError(
                f"--hours {hours:g} does not extend {folder.path}, which "
                + (f"lasts {now}" if now.hours else f"has run for {done_s / S_PER_HOUR:.2f} hours")
                + "; give the hours in all"
            )
        return length
    assert iterations is not None
    done = len(read_plans(folder)) if now.hours else now.iterations
    if iterations <= done:
        raise UsageError(
            f"--iterations {iterations} does not extend {folder.path}, which "
            + (f"has begun {counted(done, 'iteration')}" if now.hours else f"lasts {now}")
            + "; give the iterations in all"
        )
    return Length(iterations)


def _runs_elsewhere(folder: CampaignFolder, writer: str) -> CampaignError:
    return CampaignError(
        f"{folder.path} runs on another host ({writer}) and is not extended; extend it there, or "
        "stop it first"
    )
