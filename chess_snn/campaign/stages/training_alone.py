"""Supervised training without a campaign: given games in, one checkpoint out.

::

    <out>.unfinished/          while it is under way
      train.json               what is trained on what
      step-000001200/          the newest checkpoint, beside the one before
    <out>/                     the trained network, a checkpoint like a campaign's

Run again with the same settings, it goes on where it stood.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from chess_snn.campaign.configuration.loading import config_values, flat_values
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.given_games import course_through, fixed_games
from chess_snn.campaign.stages.warm_start import SUPERVISED, supervised_json, supervised_trainer
from chess_snn.data import (
    is_committed,
    read_json,
    read_manifest,
    sweep_temporaries,
    write_json,
)
from chess_snn.devices import find_devices
from chess_snn.errors import UsageError
from chess_snn.games import get_game
from chess_snn.training import Points, save_checkpoint, train_supervised
from chess_snn.types import Json, Progress

_SUFFIX: Final = ".unfinished"
_DESCRIPTION: Final = "train.json"
_SETTINGS: Final = "settings"
_S_PER_MINUTE: Final = 60.0
_NOT_OF_THE_RESULT: Final = ("games", "checkpoint_minutes")
"""Settings of ``[supervised]`` that may change between two runs; the games have their digest."""


@dataclass(frozen=True, slots=True)
class TrainedNetwork:
    """A network that has learnt from given games."""

    path: Path
    """Its checkpoint."""
    points: Points
    was_there: bool
    """Whether an earlier run had finished it."""


def train_network(
    config: CampaignConfig, out: Path, *, num_threads: int = 1,
    on_progress: Progress | None = None,
) -> TrainedNetwork:
    """Train a network on the games of ``config.supervised``, or go on with that.

    Args:
        config: its games are fixed, see
            :func:`chess_snn.campaign.stages.given_games.fix_given_games`; of the rest,
            ``net``, ``training``, the seed and the device are looked at.
        out: the checkpoint to be.
        num_threads: of a CPU.
        on_progress: called after every step with (steps done, steps in all).

    Raises:
        UsageError: ``out`` or what is unfinished there is something else, or the games are gone.
        CorruptDataError: a shard or a checkpoint is damaged.
    """
    settings = _settings_of_the_result(config)
    if out.exists():
        return _finished_before(out, settings)
    unfinished = out.with_name(out.name + _SUFFIX)
    _begin(unfinished, settings)
    given, game = fixed_games(config), get_game(config.campaign.game)
    device = find_devices(config.execution.device)[0]
    torch.set_num_threads(num_threads)
    trainer, points = train_supervised(
        game, course_through(given, config), lambda: supervised_trainer(game, config, device),
        unfinished, device=device, on_progress=on_progress,
        checkpoint_s=_S_PER_MINUTE * config.supervised.checkpoint_minutes,
    )
    save_checkpoint(out, trainer, meta={
        SUPERVISED: supervised_json(given, points), _SETTINGS: settings,
    })
    shutil.rmtree(unfinished, ignore_errors=True)  # of no more use, and no harm
    return TrainedNetwork(out, points, was_there=False)


def _settings_of_the_result(config: CampaignConfig) -> Json:
    """Whatever the weights depend on."""
    values = config_values(config)
    supervised = {
        name: value for name, value in values["supervised"].items()
        if name not in _NOT_OF_THE_RESULT
    }
    run = {name: values["campaign"][name] for name in ("game", "seed")}
    return {
        "campaign": run, "net": values["net"], "training": values["training"],
        "supervised": supervised,
    }


def _finished_before(out: Path, settings: Json) -> TrainedNetwork:
    meta = read_manifest(out).meta if is_committed(out) else {}
    if _SETTINGS not in meta:
        raise UsageError(
            f"{out} exists, and is no network made by `chess-snn games learn`; choose another --out"
        )
    _check_same(out, meta[_SETTINGS], settings)
    return TrainedNetwork(out, meta[SUPERVISED]["points"], was_there=True)


def _begin(unfinished: Path, settings: Json) -> None:
    """Say what is trained, or see that it is the same as what was begun."""
    description = unfinished / _DESCRIPTION
    if not description.exists():
        write_json(description, {_SETTINGS: settings})
        return
    sweep_temporaries(unfinished)
    _check_same(unfinished, read_json(description).get(_SETTINGS, {}), settings)


def _check_same(place: Path, before: Json, now: Json) -> None:
    old, new = flat_values(before), flat_values(now)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            raise UsageError(
                f"{place} was made with {name} = {old.get(name)!r}, which is {new.get(name)!r} "
                "now; choose another --out, or delete it"
            )
