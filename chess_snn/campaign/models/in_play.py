"""Changes behind a network's name, after ``#``: play it otherwise than it was trained.

``runs/a@12#ticks=4,search.kind=puct``, in any order. As with ``--set``, of two values of
one name the later counts.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.configuration.loading import changed_config
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.errors import UsageError
from chess_snn.nets import MOST_TICKS
from chess_snn.search import SearchSettings
from chess_snn.settings import check_range

_SEARCH: Final = "search."


@dataclass(frozen=True, slots=True)
class InPlay:
    """Changes to how a network is played; none by default."""

    ticks: int = 0
    """Ticks of an evaluation; 0 takes those of its training."""
    search: tuple[str, ...] = ()
    """Settings of the search, as ``--set`` takes them: ``search.kind=puct``."""

    def __bool__(self) -> bool:
        """Return whether anything is changed."""
        return self != AS_TRAINED

    def search_settings(self, config: CampaignConfig) -> SearchSettings:
        """Return the search settings of ``config`` with the changes.

        Raises:
            ConfigError: a setting is unknown, or its value out of range.
        """
        return changed_config(config, self.search).search


AS_TRAINED: Final = InPlay()


def split_play(text: str) -> tuple[str, InPlay]:
    """``runs/a@12#ticks=4`` as ``runs/a@12`` and how it is played.

    A name that exists as it stands is left whole.

    Raises:
        ConfigError: a number is out of range.
        UsageError: something else stands there.
    """
    name, found, play = text.rpartition("#")
    if not found or "/" in play or Path(text).exists():
        return text, AS_TRAINED
    ticks, search = 0, []
    for part in play.split(","):
        key, _, value = part.partition("=")
        if key == "ticks" and value.isdecimal():
            ticks = int(value)
            check_range(f"ticks of {text!r}", ticks, ge=1, le=MOST_TICKS)
        elif key.startswith(_SEARCH) and value:
            search.append(part)
        else:
            raise UsageError(
                f"{part!r} in {text!r} does not say how to play a network; behind # may stand "
                "ticks=N and settings of the search such as search.kind=puct, with "
                "commas between them"
            )
    changes = InPlay(ticks, tuple(search))
    changes.search_settings(CampaignConfig())
    return name, changes
