"""A network on its own: a folder that needs no campaign, to be copied anywhere and played.

::

    <folder>/
      weights.safetensors   the network
      model.toml            what it is, and the settings it is played and was trained with
      README.md             the same for people
      MANIFEST.json         sizes and SHA-256 of the above
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.configuration.loading import (
    build_config,
    config_values,
    format_toml,
    read_toml,
)
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.models.model_card import model_card
from chess_snn.campaign.models.versions import NetworkVersion, version_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import refuse_removed
from chess_snn.data import read_manifest, staged_folder, write_text
from chess_snn.data.manifest import describe_file, verify_folder
from chess_snn.errors import ConfigError, CorruptDataError, UsageError
from chess_snn.training import WEIGHTS, load_weights
from chess_snn.types import Json

MODEL_FILE: Final = "model.toml"
CARD: Final = "README.md"
KIND: Final = "model"
_FACTS: Final = "model"
"""The table of :data:`MODEL_FILE` that is no group of settings."""


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """What an exported folder says of its network."""

    generation: int
    """In the campaign that it comes from."""
    facts: Json
    """Of :meth:`NetworkVersion.to_json`, what was known."""
    config: CampaignConfig
    """The campaign's."""


def export_model(folder: CampaignFolder, generation: int, target: Path) -> NetworkVersion:
    """Write ``generation`` to ``target``, a new folder, whole or not at all.

    Raises:
        CampaignError: there is no such generation, or its iteration is not finished.
        CorruptDataError: its checkpoint is damaged, or was while it was copied.
        UsageError: ``target`` exists, or cannot be written.
    """
    if target.exists():
        raise _is_taken(target)
    version = version_of(folder, generation)
    refuse_removed(folder, generation)
    checkpoint = folder.checkpoint(generation)
    load_weights(checkpoint)
    with staged_folder(target) as stage:
        shutil.copyfile(checkpoint / WEIGHTS, stage.path / WEIGHTS)
        if describe_file(stage.path / WEIGHTS) != read_manifest(checkpoint).files[WEIGHTS]:
            raise CorruptDataError(
                f"the copy of {checkpoint / WEIGHTS} is not what was committed; look at the disks "
                "and export it again"
            )
        write_text(stage.path / MODEL_FILE, _description(folder, version))
        write_text(stage.path / CARD, model_card(version))
        committed = stage.commit(KIND, {"weights_digest": version.digest})
    if committed.meta.get("weights_digest") != version.digest:
        raise _is_taken(target)  # somebody was faster
    return version


def copy_model(source: Path, target: Path) -> ExportedModel:
    """Copy the exported model in ``source`` to ``target``, a new folder, whole or not at all.

    Raises:
        CorruptDataError: a file in ``source`` is damaged.
        UsageError: ``target`` exists, or cannot be written.
    """
    if target.exists():
        raise _is_taken(target)
    exported, files = read_exported(source), verify_folder(source).files
    with staged_folder(target) as stage:
        for name in files:
            shutil.copyfile(source / name, stage.path / name)
        stage.commit(KIND, {"weights_digest": exported.facts["digest"]})
    return exported


def commit_model(target: Path, weights: Path, config: CampaignConfig, facts: Json) -> None:
    """Write a network whose campaign is elsewhere to ``target``; what is there already stays.

    Args:
        target: as :func:`export_model` makes it, without the card for people.
        weights: its file.
        config: of its campaign.
        facts: what is known of it: at least its ``generation`` and the ``digest`` of its weights.
    """
    with staged_folder(target) as stage:
        shutil.copyfile(weights, stage.path / WEIGHTS)
        text = format_toml({_FACTS: _without_nulls(facts)} | config_values(config))
        write_text(stage.path / MODEL_FILE, text)
        stage.commit(KIND, {"weights_digest": facts["digest"]})


def read_exported(folder: Path) -> ExportedModel:
    """What the exported model in ``folder`` is; its files are not verified.

    Raises:
        CorruptDataError: its description is damaged.
    """
    path = folder / MODEL_FILE
    try:
        values = read_toml(path)
        facts = values.pop(_FACTS)
        return ExportedModel(int(facts["generation"]), facts, build_config(values))
    except (ConfigError, KeyError, TypeError, ValueError) as error:
        raise CorruptDataError(
            f"{path} does not describe a model ({error}); export it again"
        ) from error


def _is_taken(target: Path) -> UsageError:
    return UsageError(f"{target} exists already; choose a new folder with --out")


def _description(folder: CampaignFolder, version: NetworkVersion) -> str:
    # TOML has no null: what is not known is left out.
    return format_toml({_FACTS: _without_nulls(version.to_json())} | config_values(folder.config))


def _without_nulls(values: Json) -> Json:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in values.items() if value is not None
    }
