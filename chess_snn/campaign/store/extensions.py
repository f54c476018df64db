"""How long a campaign lasts: as its settings say, or as it was extended since.

An extension is a file of its own, so the frozen settings stay what they were, and a campaign that
runs finds it when its next iteration begins.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from chess_snn.campaign.configuration.settings import RunSettings
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data import StoredFormat, create_text, read_json
from chess_snn.errors import CampaignError, ConfigError, CorruptDataError

FORMAT: Final = StoredFormat("extension", version=1, first_with_digest=1)
S_PER_HOUR: Final = 3600.0
_HINT: Final = "restore it from a copy"


@dataclass(frozen=True, slots=True)
class Length:
    """How long a campaign lasts in all."""

    iterations: int
    """Ignored if ``hours`` is set."""
    hours: float = 0.0
    """Of time in which it runs; 0 counts iterations."""

    def __post_init__(self) -> None:
        RunSettings(iterations=self.iterations, hours=self.hours)  # whose bounds hold here too

    def __str__(self) -> str:
        """For people: ``20 iterations`` or ``1.5 hours``."""
        if self.hours:
            return f"{self.hours:g} hour" + ("" if self.hours == 1 else "s")
        return f"{self.iterations:,} iteration" + ("" if self.iterations == 1 else "s")


@dataclass(frozen=True, slots=True)
class Extension:
    """A decision on how long the campaign lasts."""

    length: Length
    progress: float
    """Share of the campaign that was planned already, in [0, 1]; no later plan begins below it."""
    created: str
    """ISO 8601, UTC."""


def campaign_length(folder: CampaignFolder) -> Length:
    """How long the campaign lasts now.

    Raises:
        CorruptDataError: an extension is damaged.
    """
    newest = num_extensions(folder)
    if newest:
        return read_extension(folder.extension(newest - 1)).length
    return Length(folder.config.campaign.iterations, folder.config.campaign.hours)


def progress_when_extended(folder: CampaignFolder) -> float:
    """Share of the campaign that was planned when it was extended last, in [0, 1]; 0 if never.

    Raises:
        CorruptDataError: an extension is damaged.
    """
    newest = num_extensions(folder)
    return read_extension(folder.extension(newest - 1)).progress if newest else 0.0


def num_extensions(folder: CampaignFolder) -> int:
    """How often the campaign was extended."""
    number = 0
    while folder.extension(number).exists():
        number += 1
    return number


def write_extension(folder: CampaignFolder, length: Length, progress: float) -> None:
    """Let the campaign last ``length`` in all; ``progress``, in [0, 1], was planned before.

    Raises:
        CampaignError: it was extended by another process at the same time.
    """
    extension = Extension(length, progress, datetime.now(UTC).isoformat(timespec="seconds"))
    path = folder.extension(num_extensions(folder))
    if not create_text(path, json.dumps(FORMAT.sealed(asdict(extension)), indent=2) + "\n"):
        raise CampaignError(
            f"{folder.path} was extended at the same moment by another process, to "
            f"{campaign_length(folder)}; look whether that is enough"
        )


def read_extension(path: Path) -> Extension:
    """The extension in a file.

    Raises:
        UnknownVersionError: it has a version that this program does not read.
        CorruptDataError: it is corrupt.
    """
    body = FORMAT.unsealed(read_json(path, _HINT), path, _HINT)
    try:
        return from_json(Extension, body)
    except (ValueError, ConfigError) as error:
        raise CorruptDataError(f"{path} is not an extension ({error}); {_HINT}") from error
