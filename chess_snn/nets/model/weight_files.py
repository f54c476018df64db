"""Facts about a network in a file, for which torch is not loaded."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from safetensors import SafetensorError, deserialize

from chess_snn.errors import CorruptDataError, UnknownVersionError, UsageError

FORMAT: Final = "chess-snn network"
VERSION: Final = "2"
HALF_VERSION: Final = "3"
"""Version in which all numbers are stored in 16 bits."""
LENGTH_BYTES: Final = 8
"""First bytes of a safetensors file, which say how long its header is."""
_TYPES: Final = {"F32": "torch.float32", "I64": "torch.int64"}
"""Names that torch has for the types of stored tensors."""

_Tensors = TypeVar("_Tensors")


def read_file(
    path: Path, load: Callable[[bytes], _Tensors]
) -> tuple[_Tensors, dict[str, str]]:
    """Tensors in a safetensors file, as ``load`` gives them, and its metadata.

    Raises:
        UsageError: there is no such file.
        CorruptDataError: it is not a safetensors file, or corrupt.
    """
    if not path.is_file():
        raise UsageError(f"no network at {path}; give the file that save_network wrote")
    content = path.read_bytes()  # safetensors' own way from a file takes paths in UTF-8 alone
    try:
        return load(content), _metadata(content)
    except (SafetensorError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CorruptDataError(
            f"{path} is not a safetensors file, or is corrupt ({reason}); use an earlier one"
        ) from error


def check_version(path: Path, metadata: dict[str, str]) -> None:
    """Check that ``metadata`` of ``path`` are those of a network that can be read.

    Raises:
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is not a network of this program.
    """
    if metadata.get("format") != FORMAT:
        raise CorruptDataError(
            f"{path} is not a {FORMAT} file; only files of save_network are loaded"
        )
    if metadata.get("version") not in (VERSION, HALF_VERSION):
        raise UnknownVersionError(
            f"{path} has version {metadata.get('version')!r} of the {FORMAT} format, this program "
            f"reads versions {VERSION} and {HALF_VERSION}; load it with the program that wrote it"
        )


def stored_game(path: Path) -> str:
    """Name of the game that the network stored at ``path`` plays.

    Raises:
        UsageError: there is no such file.
        CorruptDataError: it is not a network of this program.
    """
    _, metadata = read_file(path, deserialize)
    if "game" not in metadata:
        raise CorruptDataError(f"{path} is not a {FORMAT} file: it does not name its game")
    return metadata["game"]


def stored_digest(path: Path) -> str:
    """Digest of the network at ``path``, as :func:`.weights.network_digest` of it is.

    Raises:
        UsageError: there is no such file.
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is corrupt, not a network, or holds numbers that are not finite.
        KeyError: it has tensors of another type than networks have.
    """
    tensors: list[tuple[str, dict[str, Any]]]
    tensors, metadata = read_file(path, deserialize)
    check_version(path, metadata)
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors, key=lambda tensor: tensor[0]):
        kind, content = tensor["dtype"], tensor["data"]
        if kind == "F16":
            kind, content = "F32", np.frombuffer(content, "<f2").astype("<f4").tobytes()
        if kind == "F32" and not np.isfinite(np.frombuffer(content, "<f4")).all():
            raise CorruptDataError(f"{path}: {name} holds numbers that are not finite")
        digest.update(f"{name} {_TYPES[kind]} {tuple(tensor['shape'])}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _metadata(content: bytes) -> dict[str, str]:
    """Key in the header of a safetensors file."""
    header = json.loads(content[LENGTH_BYTES:header_end(content)])
    return dict(header.get("__metadata__") or {})


def header_end(content: bytes) -> int:
    """The offset at which the header of a safetensors file ends and its tensors begin."""
    return LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
