"""How long a campaign lasts: as its settings say, or as it was extended since.

An extension is a file of its own, so the frozen settings stay what they were, and a campaign that
runs finds it when its next iteration begins.
"""

from dataclasses import dataclass
from typing import Final

from chess_snn.campaign.configuration.settings import RunSettings
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import RecordFormat, numbered_files
from chess_snn.data import StoredFormat, create_text, utc_now
from chess_snn.errors import CampaignError

S_PER_HOUR: Final = 3600.0


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


EXTENSIONS: Final = RecordFormat(
    Extension, StoredFormat("extension", version=1, first_with_digest=1)
)


def newest_extension(folder: CampaignFolder) -> Extension | None:
    """The last extension of the campaign; None if it was never extended.

    Raises:
        CorruptDataError: it is damaged.
    """
    files = numbered_files(folder.extension)
    return EXTENSIONS.read(files[-1]) if files else None


def campaign_length(folder: CampaignFolder) -> Length:
    """How long the campaign lasts now. Raises as :func:`newest_extension`."""
    if extension := newest_extension(folder):
        return extension.length
    return Length(folder.config.campaign.iterations, folder.config.campaign.hours)


def num_extensions(folder: CampaignFolder) -> int:
    """How often the campaign was extended."""
    return len(numbered_files(folder.extension))


def write_extension(folder: CampaignFolder, length: Length, progress: float) -> None:
    """Let the campaign last ``length`` in all; ``progress``, in [0, 1], was planned before.

    Raises:
        CampaignError: it was extended by another process at the same time.
    """
    extension = Extension(length, progress, utc_now())
    path = folder.extension(num_extensions(folder))
    if not create_text(path, EXTENSIONS.text(extension)):
        raise CampaignError(
            f"{folder.path} was extended at the same moment by another process, to "
            f"{campaign_length(folder)}; look whether that is enough"
        )
