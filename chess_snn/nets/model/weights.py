"""Networks in files: safetensors, never a pickle.

A file's metadata says what it is (``format``, ``version``), which game it plays (``game``) and how
it is built (``config``, JSON), so that a file is enough to get the network back. Numbers are
float32; a network whose numbers all fit in 16 bits, as of `shipped/chess`, is stored in 16 bits.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load, save
from torch import Tensor

from chess_snn.errors import ConfigError, CorruptDataError
from chess_snn.games import get_game
from chess_snn.nets.model.config import NetConfig
from chess_snn.nets.model.network import Network
from chess_snn.nets.model.weight_files import (
    FORMAT,
    HALF_VERSION,
    LENGTH_BYTES,
    VERSION,
    check_version,
    header_end,
    read_file,
)

_ALIGNMENT: Final = 8
"""Alignment of the tensors in a safetensors file, in bytes; spaces fill up its header."""


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write contiguous ``tensors`` to ``path`` as safetensors.

    Equal tensors and metadata give equal bytes, in every process. The library's own header lists
    the metadata in the random order of a hash map, so the header is written here.

    Raises:
        OSError: the disk is full, say; safetensors' own way to a file raises an error of its own.
    """
    content = save(dict(tensors))
    end = header_end(content)
    header = json.loads(content[LENGTH_BYTES:end])
    if metadata:
        header = {"__metadata__": dict(sorted(metadata.items())), **header}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(LENGTH_BYTES, "little") + text)
        file.write(memoryview(content)[end:])


def save_network(path: Path, network: Network) -> None:
    """Write ``network`` to ``path``; a file that was there is replaced at once or not at all."""
    tensors = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    halves = {name: _halved(tensor) for name, tensor in tensors.items()}
    is_half = all(torch.equal(halves[name].to(tensor.dtype), tensor)
                  for name, tensor in tensors.items())
    metadata = {
        "format": FORMAT,
        "version": HALF_VERSION if is_half else VERSION,
        "game": network.spec.name,
        "config": json.dumps(asdict(network.config), sort_keys=True),
    }
    unfinished = path.with_name(path.name + ".partial")
    write_tensors(unfinished, halves if is_half else tensors, metadata)
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)


def _halved(tensor: Tensor) -> Tensor:
    return tensor.to(torch.float16) if tensor.is_floating_point() else tensor


def load_network(path: Path) -> Network:
    """The network stored at ``path``, on the CPU, in evaluation mode.

    Raises:
        UsageError: there is no such file.
        UnknownVersionError: it is of a version that is not read.
        CorruptDataError: it is truncated, not a network of this program, or does not fit together.
    """
    tensors, metadata = read_tensors(path)
    check_version(path, metadata)
    try:
        spec = get_game(metadata["game"]).spec
        config = NetConfig(**json.loads(metadata["config"]))
    except (KeyError, TypeError, ValueError, RecursionError, ConfigError) as error:
        raise CorruptDataError(f"{path} does not describe its network: {error}") from error
    with torch.device("meta"):  # where a network of any size takes no memory
        expected = Network(spec, config).state_dict()
    if metadata["version"] == HALF_VERSION:
        expected = {name: _halved(tensor) for name, tensor in expected.items()}
    _check_fit(path, tensors, expected)
    network = Network(spec, config)
    network.load_state_dict(tensors)
    return network.eval()


def network_digest(network: Network) -> str:
    """SHA-256, in hex, over names, types, shapes and bytes of all tensors, on any device."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata that :func:`write_tensors` put at ``path``, on the CPU.

    Raises as :func:`read_file`.
    """
    return read_file(path, load)


def _check_fit(path: Path, stored: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    if odd := sorted(stored.keys() ^ expected.keys()):
        raise CorruptDataError(f"{path} does not hold the tensors its config asks for: {odd[0]}, …")
    for name, tensor in stored.items():
        wanted = expected[name]
        if tensor.shape != wanted.shape or tensor.dtype != wanted.dtype:
            raise CorruptDataError(
                f"{path}: {name} is {tensor.dtype}{list(tensor.shape)}, its config asks for "
                f"{wanted.dtype}{list(wanted.shape)}"
            )
        if not torch.isfinite(tensor).all():
            raise CorruptDataError(f"{path}: {name} holds numbers that are not finite")
