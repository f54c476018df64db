"""Reading a PGN file piece by piece, packed or not, in bounded memory.

A file's compression follows from its first bytes, not from its name.
"""

import hashlib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final

import zstandard

from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.pgn.reading import FoundGame, find_games
from chess_snn.pgn.selection import EVERYTHING, Selection
from chess_snn.types import Progress

GAMES_PER_CHUNK: Final = 1000
"""One chunk becomes one shard."""
MOST_CHUNK_BYTES: Final = 32 << 20
"""A chunk ends with the game that brings it there."""
LONGEST_GAME_BYTES: Final = 16 << 20

_BLOCK_BYTES: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = (b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18")
"""The second begins files that were packed by several threads."""
_PACKED_STEP: Final = 16 << 10
"""Bytes to unpack at once: a few well-packed ones may come to a lot of text."""
_GZIP_WINDOW: Final = 16 + zlib.MAX_WBITS
_FOREIGN: Final = {
    b"PK\x03\x04": "a zip archive", b"7z\xbc\xaf": "a 7z archive", b"BZh": "packed by bzip2",
    b"\xfd7zXZ": "packed by xz", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16",
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some wanted games of a file. Which ones depends on text and selection alone."""

    index: int
    numbers: tuple[int, ...]
    """Numbers of its games in the file, from 1."""
    text: bytes
    """Empty behind the last wanted game."""
    left_out: Mapping[str, int]
    """Games since the chunk before that were not wanted, by the option that left them out."""

    @property
    def sha256(self) -> str:
        """64 hexadecimal digits."""
        return hashlib.sha256(self.text).hexdigest()


def read_chunks(
    path: Path, selection: Selection = EVERYTHING, on_progress: Progress | None = None
) -> Iterator[Chunk]:
    """The wanted games of the file at ``path``; its limit is not looked at.

    Args:
        path: PGN, plain or packed by gzip or zstd.
        selection: the games that are wanted.
        on_progress: called with the bytes of the file read so far, and in all.

    Raises:
        UsageError: it cannot be read, is packed in another way, is UTF-16, or is not PGN.
        CorruptDataError: a packed file is damaged or truncated.
    """
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            blocks = _counted(_unpack(path, file), file, size, on_progress)
            yield from _gather(selection, _games(path, blocks))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; give a PGN file") from error


def _gather(selection: Selection, games: Iterator[tuple[FoundGame, bytes]]) -> Iterator[Chunk]:
    index, num_bytes = 0, 0
    numbers: list[int] = []
    texts: list[bytes] = []
    left_out = Counter[str]()
    for number, (game, text) in enumerate(games, start=1):
        if dropped := selection.drops(game.tags, game.result):
            left_out[dropped] += 1
            continue
        numbers.append(number)
        texts.append(text)
        num_bytes += len(text)
        if len(texts) == GAMES_PER_CHUNK or num_bytes >= MOST_CHUNK_BYTES:
            yield Chunk(index, tuple(numbers), b"".join(texts), dict(left_out))
            index, num_bytes = index + 1, 0
            numbers, texts = [], []
            left_out.clear()
    if texts or left_out:
        yield Chunk(index, tuple(numbers), b"".join(texts), dict(left_out))


def _games(path: Path, blocks: Iterator[bytes]) -> Iterator[tuple[FoundGame, bytes]]:
    """Each game of the file with its text: up to the next one, which shows where it ends."""
    number, rest = 1, b""
    last: tuple[FoundGame, bytes] | None = None
    for block in blocks:
        rest += block
        begin = 0
        # Text before the first game goes with it; the last game may go on in the next block.
        for game, following in pairwise(find_games(rest)):
            if last is not None:
                yield last
            last = game, rest[begin : following.start]
            number, begin = number + 1, following.start
        rest = rest[begin:]
        if len(rest) > LONGEST_GAME_BYTES:
            raise UsageError(
                f"game {number:,} of {path} has no end within {LONGEST_GAME_BYTES >> 20} MiB; is "
                "this PGN?"
            )
    found = find_games(rest)
    if last is not None:
        # The rest may be the end of a second result, whose beginning looked like a game.
        yield last if found else (last[0], last[1] + rest)
    if found:
        yield found[0], rest


def _counted(
    blocks: Iterator[bytes], file: BinaryIO, size: int,
    on_progress: Progress | None,
) -> Iterator[bytes]:
    for block in blocks:
        if on_progress is not None:
            on_progress(file.tell(), size)
        yield block


def _unpack(path: Path, file: BinaryIO) -> Iterator[bytes]:
    blocks = iter(lambda: file.read(_BLOCK_BYTES), b"")
    head = next(blocks, b"")
    for magic, what in _FOREIGN.items():
        if head.startswith(magic):
            raise UsageError(
                f"{path} is {what}; turn it into plain PGN, or PGN packed by gzip or zstd, first"
            )
    packed = chain([head], blocks)
    if head.startswith(_GZIP):
        return _decompress(path, packed, lambda: zlib.decompressobj(_GZIP_WINDOW), zlib.error)
    if head.startswith(_ZSTD):
        return _decompress(
            path, packed, zstandard.ZstdDecompressor().decompressobj, zstandard.ZstdError
        )
    return packed


def _decompress(
    path: Path, packed: Iterator[bytes], new_stream: Callable[[], Any],
    fault: type[Exception],
) -> Iterator[bytes]:
    """Unpack ``packed``; one stream may follow another, as ``cat a.gz b.gz`` has it."""
    stream, is_between = new_stream(), True
    try:
        for block in packed:
            for start in range(0, len(block), _PACKED_STEP):
                left = block[start : start + _PACKED_STEP]
                while left:
                    if text := stream.decompress(left):
                        yield text
                    is_between = stream.eof
                    left = stream.unused_data if stream.eof else b""
                    if stream.eof:
                        stream = new_stream()
    except fault as error:
        raise _damaged(path, str(error)) from error
    if not is_between:
        raise _damaged(path, "it ends in the middle")


def _damaged(path: Path, fault: str) -> CorruptDataError:
    return CorruptDataError(
        f"{path} is damaged ({fault}); fetch it again, and import it into the same folder: games "
        "before the damage that were imported stay"
    )
