"""Check before a campaign runs that its folder can be written and its settings are unchanged.

Settings are stored twice: in ``campaign.toml``, for people, and in the manifests of checkpoints,
which have digests. An edit of the first is found by the second.
"""

import os
from typing import Any, Final

from chess_snn.campaign.artifacts.table import top_folders
from chess_snn.campaign.configuration.loading import build_config, config_values, flat_values
from chess_snn.campaign.configuration.pace import PACE_GROUPS
from chess_snn.campaign.stages.networks import FROZEN_SETTINGS
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.data import read_manifest
from chess_snn.errors import CampaignError, CorruptDataError
from chess_snn.training import step_checkpoints

MAY_CHANGE: Final = frozenset({*PACE_GROUPS, "supervised.games", "supervised.checkpoint_minutes"})
"""Groups and settings that say where something is or is done, and not what."""
_LENGTH: Final = ("campaign.iterations ", "campaign.hours ")


def check_before_run(folder: CampaignFolder) -> None:
    """Return if ``folder`` can be continued, before any work is done.

    Raises:
        CampaignError: it, or a folder in it, cannot be written; or a setting was changed. Names it.
        ConfigError: it plays without search and has no teacher, as earlier versions could.
    """
    folder.config.check_labels()
    _check_writable(folder)
    check_settings(folder)


def _check_writable(folder: CampaignFolder) -> None:
    folders = [folder.path, *(folder.path / top for top in top_folders()), folder.services]
    for place in folders:
        if place.exists() and not os.access(place, os.W_OK | os.X_OK):
            raise CampaignError(
                f"cannot write {place}; correct its permissions, or mount its disk for writing"
            )


def check_settings(folder: CampaignFolder) -> None:
    """Return if ``campaign.toml`` is what it was when the campaign began.

    Raises:
        CampaignError: a setting was changed that may not be. Names each.
    """
    frozen = _frozen_settings(folder)
    if frozen is None:
        return
    # Through the same classes: a setting that is newer than the campaign had its default.
    before = flat_values(config_values(build_config(frozen)))
    now = flat_values(config_values(folder.config))
    changed = [
        f"{name} was {before[name]!r} and is {now[name]!r}" for name in now
        if now[name] != before[name] and not {name, name.partition(".")[0]} & MAY_CHANGE
    ]
    if changed:
        file = folder.path / CONFIG_FILE
        raise CampaignError(
            f"{file} was changed since the campaign began: {'; '.join(changed)}; set it back, or "
            f"begin another campaign with these settings: chess-snn campaign start --config {file}"
            + (f"; to let it last longer: chess-snn campaign extend {folder.path}"
               if any(text.startswith(_LENGTH) for text in changed) else "")
        )


def _frozen_settings(folder: CampaignFolder) -> dict[str, Any] | None:
    """Return the settings of the first readable generation, or those that it is made from.

    None where nothing was done under any settings, and of a campaign that a version began which
    froze them in ``campaign.toml`` alone.
    """
    generations = [
        path for path in map(folder.checkpoint, folder.generations())
        # Those of the campaign that this one is a fork of were made under its settings.
        if folder.origin is None or not folder.origin.is_forked(folder.name_of(path))
    ]
    for path in (*generations, *reversed(step_checkpoints(folder.supervised))):
        try:
            frozen = read_manifest(path).meta.get(FROZEN_SETTINGS)
        except CorruptDataError:
            continue  # it is rebuilt, or reported, once it is needed
        if frozen is not None:
            return dict(frozen)
    return None
