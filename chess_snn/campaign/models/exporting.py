"""A network on its own: a folder that needs no campaign, to be copied anywhere and played.

::

    <folder>/
      weights.safetensors   the network
      model.toml            what it is, and the settings it is played and was trained with
      README.md             the same for people
      MANIFEST.json         sizes and SHA-256 of the above

For other libraries the weights are NIR or ONNX files, and there are no settings.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from chess_snn import nets, training
from chess_snn.campaign.configuration.loading import (
    changed_config,
    config_values,
    format_toml,
)
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.models.model import MODEL_FACTS, MODEL_FILE, read_exported
from chess_snn.campaign.models.versions import NetworkVersion, model_card, version_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.generations import read_generation
from chess_snn.campaign.store.notes import refuse_removed
from chess_snn.data import copy_folder, staged_folder, write_text
from chess_snn.data.manifest import Manifest, StoredFile, describe_file
from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.known import Format
from chess_snn.training import WEIGHTS
from chess_snn.types import Json

CARD: Final = "README.md"
KIND: Final = "model"


def export_model(
    folder: CampaignFolder, generation: int, target: Path, notes: str = "",
    settings: Sequence[str] = (),
) -> NetworkVersion:
    """Write ``generation`` to ``target``, a new folder, whole or not at all.

    ``notes``, in Markdown, are added to its card. ``settings``, as ``--set`` takes them, replace
    those of the campaign: the copy is played with them.

    Raises:
        CampaignError: there is no such generation, or its iteration is not finished.
        ConfigError: a setting is unknown, or its value out of range.
        CorruptDataError: its checkpoint is damaged, or was while it was copied.
        UsageError: ``target`` exists, or cannot be written.
    """
    if target.exists():
        raise _is_taken(target)
    version = version_of(folder, generation)
    refuse_removed(folder, generation)
    checkpoint = folder.checkpoint(generation)
    manifest = read_generation(folder, generation)
    training.load_weights(checkpoint)
    committed = commit_model(
        target, checkpoint / WEIGHTS, changed_config(folder.config, settings), version.to_json(),
        model_card(version) + (notes and f"\n{notes}"),
        manifest.files[WEIGHTS],
    )
    if committed.meta.get("weights_digest") != version.digest:
        raise _is_taken(target)  # another process was faster
    return version


def copy_model(source: Path, target: Path) -> Json:
    """Copy the exported model in ``source`` to ``target``, a new folder; what is known of it.

    Raises:
        CorruptDataError: a file in ``source`` is damaged.
        UsageError: ``target`` exists, or cannot be written.
    """
    if target.exists():
        raise _is_taken(target)
    facts, _ = read_exported(source)
    copy_folder(source, target)
    return facts


def export_for_others(network: nets.Network, target: Path, chosen: Format, version: Json) -> None:
    """Write ``network`` to ``target``, a new folder, for libraries that read NIR or ONNX.

    Args:
        network: in evaluation mode or not; it is written in float32.
        target: the new folder.
        chosen: ``NIR`` or ``ONNX``.
        version: the network's campaign and generation, if they are known; stored as metadata.

    Raises:
        ConfigError: the format cannot have the network's neurons.
        UsageError: ``target`` exists, or the library that writes the format is not installed.
    """
    if target.exists():
        raise _is_taken(target)
    try:
        writer = importlib.import_module(f"chess_snn.nets.analysis.{chosen}_file")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--format {chosen} needs {error.name}; install it with: pip install "
            "'chess-snn[export]'"
        ) from error
    facts = version | {
        "game": network.spec.name, "activation": network.config.activation,
        "ticks": network.config.ticks, "weights_digest": nets.network_digest(network),
    }
    with staged_folder(target) as stage:
        writer.write_network(stage.path, nets.fold_layers(network), facts)
        if stage.commit(f"{KIND}.{chosen}", facts).meta != facts:
            raise _is_taken(target)  # another process was faster


def commit_model(
    target: Path, weights: Path, config: CampaignConfig, facts: Json, card: str = "",
    expected: StoredFile | None = None,
) -> Manifest:
    """Write a network to ``target``; returns the manifest of what is there, which may be older.

    Args:
        target: the new folder.
        weights: file of the network.
        config: of its campaign.
        facts: what is known of it: at least its ``generation`` and the ``digest`` of its weights.
        card: the same for people; none if empty.
        expected: size and digest that the copy of ``weights`` must have.

    Raises:
        CorruptDataError: the copy is another file than expected.
    """
    with staged_folder(target) as stage:
        copy = stage.path / WEIGHTS
        shutil.copyfile(weights, copy)
        if expected is not None and describe_file(copy) != expected:
            raise CorruptDataError(
                f"the copy of {weights} is not what was committed; look at the disks and export it "
                "again"
            )
        # The place of a dataset is of no use elsewhere; facts have its name and digest.
        settings = replace(config, supervised=replace(config.supervised, games="", digest=""))
        # TOML has no null: what is not known is left out.
        text = format_toml({MODEL_FACTS: _without_nulls(facts)} | config_values(settings))
        write_text(stage.path / MODEL_FILE, text)
        if card:
            write_text(stage.path / CARD, card)
        return stage.commit(KIND, {"weights_digest": facts["digest"]})


def _is_taken(target: Path) -> UsageError:
    return UsageError(f"{target} exists already; choose a new folder with --out")


def _without_nulls(values: Json) -> Json:
    return {
        name: _without_nulls(value) if isinstance(value, dict) else value
        for name, value in values.items() if value is not None
    }
