"""Random streams in plain integers: SplitMix64 (Steele, Lea & Flood 2014), written twice."""

from chess_snn.rng import derive_seed

_MASK = 2**64 - 1


def splitmix_word(key, counter):
    """Draw ``counter`` of the stream ``key``."""
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


def game_word(seed, purpose, game, counter=0):
    """Draw ``counter`` of a game's stream for a purpose."""
    return splitmix_word(splitmix_word(derive_seed(seed, purpose), game), counter)


def game_unit(seed, purpose, game):
    """Draw 0 of that stream, in [0, 1]."""
    return game_word(seed, purpose, game) / 2**64
