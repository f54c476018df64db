"""The files that commands write where their user says."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign.store.folder import campaign_around
from chess_snn.errors import UsageError

JsonFile = Annotated[Path | None, typer.Option(help="Write what was found to this file as well.")]


def check_writable(path: Path | None, option: str = "--json-file") -> None:
    """Say before the work, not after it, that the file of ``option`` cannot be written.

    Raises:
        UsageError: ``path`` is a folder, or lies in a campaign, or where this user may not write.
    """
    if path is None:
        return
    nearest = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        if path.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}; choose another {option}"
        ) from error
    refuse_in_campaign(path, option)


def refuse_in_campaign(path: Path, option: str) -> None:
    """Keep what a user has written out of campaigns, whose files it would take the place of.

    Raises:
        UsageError: ``path`` lies in a campaign's folder; names another place for ``option``.
    """
    campaign = campaign_around(path)
    if campaign is not None:
        raise UsageError(
            f"cannot write {path}: it lies in the campaign {campaign}, whose files are its own; "
            f"choose another {option}, outside of it"
        )
