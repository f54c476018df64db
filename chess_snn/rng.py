"""Seeds and random streams that do not depend on who draws them, or in which order.

A campaign has one seed. Everything random derives its own seed from it by *name*
(``derive_seed(seed, "self_play", iteration, shard)``), so a shard redone on another worker draws
the same numbers. Inside kernels, draws are counter-based: draw ``n`` of a key is a pure function
of ``(key, n)`` (SplitMix64; Steele, Lea & Flood 2014, section 3).
"""

import hashlib

import numpy as np

from chess_snn.jit import kernel
from chess_snn.types import UInt64Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S11 = np.uint64(11)
_S27 = np.uint64(27)
_S30 = np.uint64(30)
_S31 = np.uint64(31)
_TWO_POW_MINUS_53 = 2.0**-53


def derive_seed(seed: int, *path: str | int) -> int:
    """A 64-bit seed for the purpose named by ``path``, e.g. ``("self_play", iteration, shard)``."""
    text = "/".join([str(seed), *map(str, path)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *path: str | int) -> np.random.Generator:
    """A numpy generator (PCG64) seeded by :func:`derive_seed`."""
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *path)))


@kernel
def random_word(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Draw ``counter`` of the stream ``key``: 64 uniform bits."""
    z = key + (counter + np.uint64(1)) * _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@kernel
def random_words(keys: UInt64Array, counters: UInt64Array) -> UInt64Array:
    """uint64[n]: draw ``counters`` uint64[n] of the streams ``keys`` uint64[n], one of each."""
    words = np.empty_like(keys)
    for i in range(len(keys)):
        words[i] = random_word(keys[i], counters[i])
    return words


@kernel
def random_unit(key: np.uint64, counter: np.uint64) -> float:
    """Draw ``counter`` of the stream ``key`` as a float64 in the open interval (0, 1)."""
    return (float(random_word(key, counter) >> _S11) + 0.5) * _TWO_POW_MINUS_53
