"""How far supervised training has come, as its checkpoints say."""

from chess_snn.data import read_manifest
from chess_snn.errors import CorruptDataError
from chess_snn.training import step_checkpoints


def supervised_progress(folder):
    """(Steps done, steps in all) at the newest readable checkpoint in ``folder``, or None."""
    for checkpoint in reversed(step_checkpoints(folder)):
        try:
            meta = read_manifest(checkpoint).meta
        except CorruptDataError:
            continue  # removed meanwhile, or damaged
        return meta["steps"], meta["total_steps"]
    return None
