"""The files of a checkpoint, for which torch is not loaded: whether they are whole, and where."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from safetensors import deserialize

from chess_snn.data import Manifest, StoredFormat, read_json, verify_folder
from chess_snn.data.manifest import check_kind
from chess_snn.errors import ConfigError, CorruptDataError, UnknownVersionError
from chess_snn.known import WEIGHTS
from chess_snn.nets.model.weight_files import read_file, stored_digest

OPTIMIZER = "optimizer.safetensors"
TRAINER = "trainer.json"
CHECKPOINT_FORMAT: Final = StoredFormat("checkpoint", version=1)
_MISFITS = (ConfigError, KeyError, TypeError, ValueError, IndexError)
"""Errors of bytes that are intact and yet not the state of this trainer and network."""
_CHECKPOINT: Final = re.compile(r"step-(\d{9,})")


def check_checkpoint(folder: Path) -> Manifest:
    """The manifest of the checkpoint in ``folder``, from which training could go on.

    Raises:
        DamagedFolderError: a file is missing or damaged.
        UnknownVersionError: it is not a checkpoint, or of a version that cannot be read.
        CorruptDataError: all digests are right, but it is not a network.
    """
    manifest = verify_checkpoint(folder)
    with readable(folder):
        digest = stored_digest(folder / WEIGHTS)
        if digest != manifest.meta.get("weights_digest"):
            raise CorruptDataError(
                f"the weights in {folder} have digest {digest[:12]}…, its manifest says "
                f"{str(manifest.meta.get('weights_digest'))[:12]}…"
            )
        read_json(folder / TRAINER)
        read_file(folder / OPTIMIZER, deserialize)
    return manifest


def step_checkpoint(folder: Path, step: int) -> Path:
    """The place in ``folder`` of the checkpoint after ``step`` steps."""
    return folder / f"step-{step:09d}"


def step_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in ``folder``, rising by step, whole or not."""
    found = {
        int(name[1]): entry for entry in folder.glob("step-*")
        if (name := _CHECKPOINT.fullmatch(entry.name))
    }
    return [found[step] for step in sorted(found)]


def verify_checkpoint(folder: Path) -> Manifest:
    """The manifest of a checkpoint that is what was committed."""
    manifest = verify_folder(folder)
    check_kind_of(folder, manifest)
    return manifest


def check_kind_of(folder: Path, manifest: Manifest) -> None:
    """Check that a folder with ``manifest`` is a checkpoint of a version that is read."""
    check_kind(folder, manifest, CHECKPOINT_FORMAT, manifest.meta.get("checkpoint_version"))


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Take what does not fit, though all digests are right, for what another version wrote.

    This is not corruption, which would be quarantined and rebuilt: the file may be needed.
    """
    try:
        yield
    except _MISFITS as error:
        raise UnknownVersionError(
            f"checkpoint {folder} does not hold a trainer this version can read: {error!r}; "
            "go on with the program that wrote it"
        ) from error
