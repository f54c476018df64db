"""Every parser that is fuzzed."""

import file_targets
import pgn_targets
import position_targets
import settings_targets
import talk_targets
from fuzzing import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (position_targets, talk_targets, pgn_targets, settings_targets, file_targets)
    for target in module.TARGETS
}


def shares(inputs: int, names: list[str]) -> dict[str, int]:
    """How many of ``inputs`` each of ``names`` gets by its weight; together at least as many."""
    total = sum(TARGETS[name].weight for name in names)
    return {name: -(-inputs * TARGETS[name].weight // total) for name in names}
