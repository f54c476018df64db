"""What a network's neurons do for one position, as one binary frame for the page.

A frame is the length of its header (uint32, little-endian), the header (JSON, UTF-8) and the spikes
of all layers behind each other: a byte a neuron and tick of integer neurons, which may fire several
times, else a bit (the first in the highest bit of a byte), each layer on a byte of its own.
"""

import json
import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch

from chess_snn.games.base import Game, GameBatch
from chess_snn.nets import LayerActivity, count_work, expand_planes, record_activity
from chess_snn.types import Json
from chess_snn.web.networks import LoadedNetwork

_LENGTH: Final = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Spikes:
    """The spikes of one evaluation, layers in the order of their work."""

    layers: dict[str, LayerActivity]
    most: int
    """Spikes that a neuron may fire in one tick."""
    work: Json
    """Operations without zeros, and dense ones."""

    @property
    def total(self) -> int:
        """Spikes in the whole network."""
        return sum(int(layer.spikes_TX.sum(dtype=np.int64)) for layer in self.layers.values())

    def frame(self, facts: Json) -> bytes:
        """The frame; ``facts`` come first in its header."""
        chances = sum(self.most * layer.spikes_TX.size for layer in self.layers.values())
        header = json.dumps({
            **facts, "total": self.total, "share": self.total / chances if chances else 0.0,
            "most": self.most, "bits": 1 if self.most == 1 else 8, "work": self.work,
            "layers": [
                {
                    "name": name, "shape": list(layer.spikes_TX.shape),
                    "spikes": int(layer.spikes_TX.sum(dtype=np.int64)),
                    "rate": float(layer.spikes_TX.mean()) / self.most,
                }
                for name, layer in self.layers.items()
            ],
        }).encode()
        packed = map(self._packed, self.layers.values())
        return b"".join([_LENGTH.pack(len(header)), header, *packed])

    def _packed(self, layer: LayerActivity) -> bytes:
        spikes = layer.spikes_TX.reshape(-1)
        return (np.packbits(spikes) if self.most == 1 else spikes).tobytes()


def read_spikes(loaded: LoadedNetwork, game: Game, row: GameBatch) -> Spikes:
    """The spikes of the one position in ``row``, in float32; a ReLU baseline has no layers."""
    words_BP = torch.from_numpy(game.planes(row.state).view(np.int64))
    planes_BPHW = expand_planes(words_BP, game.spec.board_shape, torch.float32)
    with loaded.lock:
        layers = record_activity(loaded.network, planes_BPHW)[0]
        counts = count_work(loaded.network, planes_BPHW)
    work = {
        name: counts.total(name) for name in ("accumulates", "multiply_accumulates", "dense")
    }
    return Spikes(layers, loaded.network.config.most_spikes, work)
