"""Supervised training without a campaign: a dataset in, one checkpoint out.

::

    <out>.unfinished/          while it is under way
      train.json               what is trained on what, and all settings of the last run
      step-000001200/          the newest checkpoint, beside the one before
    <out>/                     the trained network, a checkpoint like a campaign's

Run again with the same settings, it goes on where it stood. Ranks, on one machine or several that
see the same folders, are processes that each call :func:`learn_network` on what rank 0 has begun.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Final

from chess_snn import training
from chess_snn.campaign.configuration.loading import build_config, config_values, first_difference
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.first_generation import (
    SUPERVISED,
    learn_dataset,
    new_network,
)
from chess_snn.data import is_committed, read_json, read_manifest, sweep_temporaries, write_json
from chess_snn.errors import UsageError
from chess_snn.later import torch
from chess_snn.training import ALONE, Ranks
from chess_snn.types import Json, Progress

PROGRAM: Final = "chess_snn.campaign.stages.training_program"
"""One of the ranks that train together, for ``python -m``."""
LEARN: Final = "--learn"
"""Its option to learn from a dataset."""
_SUFFIX: Final = ".unfinished"
_DESCRIPTION: Final = "train.json"
_SETTINGS: Final = "settings"
_CONFIG: Final = "config"
_NOT_OF_THE_RESULT: Final = ("games", "checkpoint_minutes")
"""Settings of ``[supervised]`` that may change between two runs; the games have their digest."""


def begin_network(config: CampaignConfig, out: Path, *, is_first: bool = True) -> bool:
    """Note what is to be trained into ``out``, for :func:`learn_network`.

    The games of ``config`` are fixed. The first, or only, rank cleans up what was left there and
    writes the note; others only check.

    Returns:
        Whether it is to be trained; else it is there already.

    Raises:
        UsageError: ``out`` or what is unfinished there is something else.
        CorruptDataError: the network that is there is damaged.
    """
    settings = settings_of_the_result(config)
    if out.exists():
        _check_finished(out, settings)
        return False
    unfinished = unfinished_folder(out)
    description = unfinished / _DESCRIPTION
    if description.exists():
        if is_first:
            sweep_temporaries(unfinished)
        _check_same(unfinished, read_json(description).get(_SETTINGS, {}), settings)
    if is_first:
        write_json(description, {_SETTINGS: settings, _CONFIG: config_values(config)})
    return True


def learn_network(
    out: Path, *, num_threads: int = 1, on_progress: Progress | None = None,
    on_step: training.StepListener | None = None, ranks: Ranks = ALONE,
) -> None:
    """Train the network that :func:`begin_network` noted, to its end; rank 0 commits it to ``out``.

    ``on_progress`` is called after every step with (steps done, steps in all).

    Raises:
        UsageError: nothing was begun there, or the games are gone.
        CorruptDataError: a shard or a checkpoint is damaged.
        RankLostError: a rank died or froze; the last checkpoint on the way stays.
    """
    config = network_config(out)
    torch.set_num_threads(num_threads)
    trainer, facts = learn_dataset(
        config, partial(new_network, config), unfinished_folder(out), {}, on_progress, on_step,
        ranks,
    )
    if not ranks.is_first:
        return
    training.save_checkpoint(out, trainer, meta={
        SUPERVISED: facts, _SETTINGS: settings_of_the_result(config),
    })
    shutil.rmtree(unfinished_folder(out), ignore_errors=True)  # of no more use, and no harm


def points_of(out: Path) -> training.Points:
    """The figures by step of the training of the network in ``out``."""
    points: training.Points = read_manifest(out).meta[SUPERVISED]["points"]
    return points


def network_config(out: Path) -> CampaignConfig:
    """The configuration that the network to be in ``out`` was begun with last.

    Raises:
        UsageError: none was begun there.
    """
    description = unfinished_folder(out) / _DESCRIPTION
    if not description.exists():
        raise UsageError(
            f"there is no {description}; give a campaign's folder, or begin a network by "
            f"`chess-snn games learn GAMES --out {out}`"
        )
    return build_config(read_json(description)[_CONFIG])


def unfinished_folder(out: Path) -> Path:
    """The folder in which the network of ``out`` is made."""
    return out.with_name(out.name + _SUFFIX)


def settings_of_the_result(config: CampaignConfig) -> Json:
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


def _check_finished(out: Path, settings: Json) -> None:
    meta = read_manifest(out).meta if is_committed(out) else {}
    if _SETTINGS not in meta:
        raise UsageError(
            f"{out} exists, and is not a network made by `chess-snn games learn`; choose another "
            "--out"
        )
    _check_same(out, meta[_SETTINGS], settings)


def _check_same(place: Path, before: Json, now: Json) -> None:
    if (difference := first_difference(before, now)) is not None:
        raise UsageError(
            f"{place} was made with {difference}; choose another --out, or delete it"
        )
