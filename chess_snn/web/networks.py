"""Networks that the page offers, those of them that are loaded, and their spikes in a position."""

from __future__ import annotations

import json
import logging
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from chess_snn.api.answers import Spikes
from chess_snn.api.network import Net
from chess_snn.campaign.models.model import Model
from chess_snn.campaign.models.references import AT_CHAMPION, REGISTERED
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.typed_json import FileMark, file_mark
from chess_snn.errors import ChessSnnError, CorruptDataError, UsageError
from chess_snn.known import GAME_NAMES, SHIPPED, SHIPPED_FOLDER
from chess_snn.training import WEIGHTS
from chess_snn.types import Json

_LOG: Final = logging.getLogger(__name__)
_MOST_LOADED: Final = 4
"""Networks kept in memory besides those of connections."""
FindModel = Callable[[str], Model]
"""Finds what a text names; raises a ChessSnnError where it cannot."""
ASK_AGAIN_S: Final = 30.0
"""The registry is asked again after this time, because an alias may move."""


class RegisteredVersions:
    """Entries of the list of networks; ``ask`` returns addresses, all of ``game``.

    The registry is asked in a thread of its own: it may take seconds, and the page does not wait.
    """

    def __init__(self, ask: Callable[[], Sequence[str]], game: str) -> None:
        self._ask, self._game = ask, game
        self._found: list[Json] = []
        self._lock, self._asked_s = threading.Lock(), -ASK_AGAIN_S

    def entries(self) -> list[Json]:
        """Return what the registry answered so far; an error is an entry without a ``model``."""
        with self._lock:
            if time.monotonic() - self._asked_s >= ASK_AGAIN_S:
                self._asked_s = time.monotonic()
                threading.Thread(target=self._look, daemon=True, name="registry").start()
        return list(self._found)

    def _look(self) -> None:
        try:
            found = [(address, address) for address in self._ask()]
        except ChessSnnError as error:
            found = [("", f"registry: {error}")]
        self._found = [{"model": m, "label": label, "game": self._game} for m, label in found]


class Networks:
    """Networks by name, for all connections. Its methods may be called in any thread."""

    def __init__(
        self, find_model: FindModel, named: Sequence[str], campaign: CampaignFolder | None,
        versions: RegisteredVersions | None = None,
    ) -> None:
        """Offer the shipped ones, ``named``, ``versions``, and all of ``campaign``."""
        self._find_model, self._named, self._campaign = find_model, tuple(named), campaign
        self._versions = versions
        self._registered: dict[str, tuple[float, Model]] = {}
        self._loaded: OrderedDict[tuple[object, ...], tuple[FileMark, Net]] = OrderedDict()
        self._lock = threading.Lock()

    def catalogue(self) -> list[Json]:
        """Return the offer: ``model``, ``label`` and ``game`` of each, the best guess first."""
        registered = [] if self._versions is None else self._versions.entries()
        return [
            *self._named_entries(), *self._generations(), *_shipped(),
            *(entry for entry in registered if entry["model"] not in self._named),
        ]

    def find(self, text: str) -> Model:
        """The model ``text``, if it is offered or registered.

        Raises:
            UsageError: it is neither, or it is gone.
            ChessSnnError: the registry is away, and the model was not fetched before.
        """
        if text.startswith(REGISTERED):
            model = self._find_registered(text)
        elif text in self._named or any(
            text == entry["model"] for entry in (*self._generations(), *_shipped())
        ):
            model = self._find_model(text)
        else:
            raise UsageError(
                f"this server does not offer the network {text!r}; choose one of the list, or "
                f"{REGISTERED}NAME/VERSION"
            )
        if not model.weights.is_file():
            raise UsageError(f"the network {text} is gone: {model.weights} is missing")
        return model

    def _find_registered(self, text: str) -> Model:
        """Ask again for an alias, which moves, but not for a version; keep both in an outage."""
        now_s, known = time.monotonic(), self._registered.get(text)
        if known is not None and not known[1].weights.is_file():
            known = None  # the cache was emptied
        if known is not None and ("@" not in text or now_s - known[0] < ASK_AGAIN_S):
            return known[1]
        try:
            model = self._find_model(text)
        except (UsageError, CorruptDataError):
            raise
        except ChessSnnError as error:
            if known is None:
                raise
            _LOG.warning("%s stays as it was fetched before: %s", text, error)
            model = known[1]
        self._registered[text] = now_s, model
        return model

    def load(self, model: Model) -> Net:
        """The network of ``model``; one whose file is unchanged is not read again.

        Raises:
            ChessSnnError: the file is damaged.
        """
        with self._lock:
            key = model.weights, model.label, model.in_play
            mark, known = file_mark(model.weights), self._loaded.pop(key, None)
            if known is None or known[0] != mark:
                known = mark, Net(model)
            self._loaded[key] = known
            while len(self._loaded) > _MOST_LOADED:
                self._loaded.popitem(last=False)
            return known[1]

    def _named_entries(self) -> list[Json]:
        """Return those of the command line; one that is gone is left out.

        No registry is asked for one that is known. An error is an entry without a ``model``.
        """
        entries: list[Json] = []
        for text in self._named:
            try:
                known = self._registered.get(text)
                model = self.find(text) if known is None else known[1]
            except UsageError:
                continue
            except ChessSnnError as error:  # it is not known of which game it is
                label = f"{text}: {error}"
                entries += [{"model": "", "label": label, "game": game} for game in GAME_NAMES]
                continue
            is_newest = model.campaign is not None and Path(text) == model.campaign.path
            label = f"{model.campaign.name}, newest" if is_newest and model.campaign else text
            entries.append({"model": text, "label": label, "game": model.game})
        return entries

    def _generations(self) -> list[Json]:
        folder = self._campaign
        if folder is None:
            return []
        game = folder.config.campaign.game
        generations = folder.generations()
        if not generations:
            return []
        champion = [AT_CHAMPION] if folder.receipt(0).exists() else []
        return [
            {
                "model": f"{folder.path}@{generation}", "game": game,
                "label": f"{folder.name}, " + (
                    generation if generation == AT_CHAMPION else f"generation {generation}"
                ),
            }
            for generation in (*champion, *reversed(generations))
        ]


def _shipped() -> list[Json]:
    return [
        {"model": SHIPPED + name, "label": SHIPPED + name, "game": name}
        for name in GAME_NAMES if (SHIPPED_FOLDER / name / WEIGHTS).is_file()
    ]


_LENGTH: Final = struct.Struct("<I")


def spikes_frame(spikes: Spikes, facts: Json) -> bytes:
    """The spikes of one position; a ReLU baseline has no layers.

    A frame is the length of its header (uint32, little-endian), the header (JSON, UTF-8) and the
    spikes of all layers behind each other: a byte a neuron and tick of integer neurons, which may
    fire several times, else a bit (the first in the highest bit of a byte), each layer on a byte of
    its own.

    ``facts`` come first in its header; then the spikes and their share of what is possible, the
    share of neurons that fire, and the operations without zeros, and dense ones.
    """
    counts, rates, most = spikes.counts, spikes.rates, spikes.most
    header = json.dumps({
        **facts, "total": spikes.total, "share": spikes.rate, "neurons": spikes.work.sender_share,
        "most": most, "bits": 1 if most == 1 else 8,
        "work": {
            name: spikes.work.total(name)
            for name in ("accumulates", "multiply_accumulates", "dense")
        },
        "layers": [
            {
                "name": name, "shape": list(spikes_TX.shape), "spikes": counts[name],
                "rate": rates[name],
            }
            for name, spikes_TX in spikes.items()
        ],
    }).encode()
    packed = (
        (np.packbits(spikes_TX) if most == 1 else spikes_TX).tobytes()
        for spikes_TX in spikes.values()
    )
    return b"".join([_LENGTH.pack(len(header)), header, *packed])
