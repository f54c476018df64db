"""Origin of a campaign that did not begin from nothing: from a network, or as a fork.

It is in ``campaign.toml``, so every copy of the folder has it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import NonNegativeInt

from chess_snn.campaign.store.typed_json import from_json
from chess_snn.data.window import INHERITED
from chess_snn.errors import ConfigError
from chess_snn.types import Json
from chess_snn.wording import counted

_DIGITS: Final = 12
"""Digits of a digest, for people."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The network that a campaign started from, or the campaign that it is a fork of."""

    reference: str
    """The network as the user wrote it: ``campaigns/cpu-001@champion``; a fork's parent folder."""
    weights_digest: str
    """Digest of that network, see :func:`chess_snn.nets.network_digest`."""
    weights: str = ""
    """Absolute path of its weights; empty where they were fetched from a registry."""
    campaign: str = ""
    """Name of the parent, the campaign that trained it; empty where that is not known."""
    campaign_id: str = ""
    """Id of the parent."""
    folder: str = ""
    """Absolute path of the parent; empty where the network was given without it."""
    generation: int | None = None
    """Generation of the network in its campaign."""
    forked_at: NonNegativeInt | None = None
    """The first iteration of a fork's own; everything before is the parent's. None: no fork."""
    games: tuple[str, ...] = ()
    """Shards of the parent's replay window that were taken along, oldest first: names below
    ``games/``."""
    positions: int = 0
    """Positions in those."""

    def describe(self) -> str:
        """One line for people."""
        parent = f"{self.campaign} ({self.campaign_id[:_DIGITS]})" if self.campaign else ""
        if self.forked_at is not None:
            return f"forked from {parent} at iteration {self.forked_at}"
        known = [
            *([f"generation {self.generation} of {parent}"] if parent else []),
            f"weights {self.weights_digest[:_DIGITS]}",
            *([f"with {counted(len(self.games), 'shard')} of its games"] if self.games else []),
        ]
        return f"started from {self.reference}: {', '.join(known)}"

    def to_toml(self) -> Json:
        """The table of ``campaign.toml``; TOML has no null, so what is not known is left out."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "", ())}

    def source_of(self, name: str) -> Path | None:
        """Return the parent's path of what is at ``name`` here, such as ``checkpoints/gen-000003``.

        None if the campaign made it itself, or the parent's folder is not known.
        """
        if not self.folder:
            return None
        kind, _, rest = name.partition("/")
        if kind == "games" and rest in self.games:
            # A fork has them under the names that its parent had for them.
            name = name if self.forked_at is not None else f"{kind}/{rest.removeprefix(INHERITED)}"
            return Path(self.folder) / name
        return Path(self.folder) / name if self.is_forked(name) else None

    def is_forked(self, name: str) -> bool:
        """Return whether a fork has the thing at ``name`` from its parent."""
        if self.forked_at is None:
            return False
        label, _, number = name.split("/")[1].removesuffix(".json").rpartition("-")
        if not number.isdecimal():
            return False
        if label == "gen":
            return int(number) <= self.forked_at
        return label == "iter" and int(number) < self.forked_at


def read_origin(table: Mapping[str, Any]) -> Origin:
    """The origin in a table of ``campaign.toml``; else raises a ConfigError."""
    try:
        return from_json(Origin, dict(table))
    except ValueError as error:
        raise ConfigError(f"[origin] of the campaign cannot be read: {error}") from error
