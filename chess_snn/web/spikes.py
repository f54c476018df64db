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

from chess_snn.games.base import Game, GameBatch
from chess_snn.nets import LayerActivity, count_work, network_input, record_activity
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

    def frame(self, facts: Json) -> bytes:
        """The frame; ``facts`` come first in its header."""
        chances = {n: self.most * layer.spikes_TX.size for n, layer in self.layers.items()}
        spikes = {n: int(layer.spikes_TX.sum(dtype=np.int64)) for n, layer in self.layers.items()}
        total = sum(spikes.values())
        header = json.dumps({
            **facts, "total": total, "share": total / sum(chances.values()) if chances else 0.0,
            "most": self.most, "bits": 1 if self.most == 1 else 8, "work": self.work,
            "layers": [
                {
                    "name": name, "shape": list(layer.spikes_TX.shape),
                    "spikes": spikes[name], "rate": spikes[name] / chances[name],
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
    planes_BPHW = network_input(game.planes(row.state), game.spec.board_shape)
    with loaded.lock:
        layers = record_activity(loaded.network, planes_BPHW)[0]
        counts = count_work(loaded.network, planes_BPHW)
    work = {
        name: counts.total(name) for name in ("accumulates", "multiply_accumulates", "dense")
    }
    return Spikes(layers, loaded.network.config.most_spikes, work)
