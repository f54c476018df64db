"""Spikes of a network's neurons for one position, as one binary frame for the page.

A frame is the length of its header (uint32, little-endian), the header (JSON, UTF-8) and the spikes
of all layers behind each other: a byte a neuron and tick of integer neurons, which may fire several
times, else a bit (the first in the highest bit of a byte), each layer on a byte of its own.
"""

import json
import struct
from typing import Final

import numpy as np

from chess_snn.games.base import Game, GameBatch
from chess_snn.nets import count_work, network_input, record_activity
from chess_snn.types import Json
from chess_snn.web.networks import LoadedNetwork

_LENGTH: Final = struct.Struct("<I")


def spikes_frame(loaded: LoadedNetwork, game: Game, row: GameBatch, facts: Json) -> bytes:
    """The frame of the one position in ``row``, in float32; a ReLU baseline has no layers.

    ``facts`` come first in its header; then the spikes and their share of what is possible, and the
    operations without zeros, and dense ones.
    """
    planes_BPHW = network_input(game.planes(row.state), game.spec.board_shape)
    with loaded.lock:
        recorded = record_activity(loaded.network, planes_BPHW)[0]
        counts = count_work(loaded.network, planes_BPHW)
    layers = {name: layer.spikes_TX for name, layer in recorded.items()}
    most = loaded.network.config.most_spikes  # of a neuron in one tick
    chances = {name: most * spikes_TX.size for name, spikes_TX in layers.items()}
    spikes = {name: int(spikes_TX.sum(dtype=np.int64)) for name, spikes_TX in layers.items()}
    total = sum(spikes.values())
    header = json.dumps({
        **facts, "total": total, "share": total / sum(chances.values()) if chances else 0.0,
        "most": most, "bits": 1 if most == 1 else 8,
        "work": {
            name: counts.total(name) for name in ("accumulates", "multiply_accumulates", "dense")
        },
        "layers": [
            {
                "name": name, "shape": list(spikes_TX.shape), "spikes": spikes[name],
                "rate": spikes[name] / chances[name],
            }
            for name, spikes_TX in layers.items()
        ],
    }).encode()
    packed = (
        (np.packbits(spikes_TX) if most == 1 else spikes_TX).tobytes()
        for spikes_TX in layers.values()
    )
    return b"".join([_LENGTH.pack(len(header)), header, *packed])
