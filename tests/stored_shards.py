"""Shards as tests damage, forge and compare them."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from chess_snn.data import Manifest, archive, with_digest
from chess_snn.data.manifest import ARCHIVE_NAME, describe_bytes
from chess_snn.types import Json

CREATED = "2026-01-01T00:00:00+00:00"


def copy_shard(shard: Path, target: Path) -> Path:
    """Copy a shard to a folder that may not be there yet."""
    target.parent.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(shard, target))


def damage(path: Path) -> None:
    """Flip a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def zipped_part(shard: Path) -> bytes:
    """A Zip file as it was before its manifest was added."""
    return bytes(archive.split(shard.read_bytes())[0]) + archive.NO_COMMENT


def manifest_body(shard: Path) -> Json:
    """Read the comment of a Zip file."""
    return dict(json.loads(archive.split(shard.read_bytes())[1]))


def edit_manifest(shard: Path, change: Callable[[Json], object]) -> None:
    """Change the manifest of a Zip file, and sign it anew."""
    body = manifest_body(shard)
    del body["digest"]
    change(body)
    comment = json.dumps(with_digest(body)).encode()
    shard.write_bytes(archive.with_comment(zipped_part(shard), comment))


def forge(shard: Path, zipped: bytes, meta: Json, kind: str = "shard") -> Path:
    """Write a shard of any content, which the digests of its manifest confirm."""
    manifest = Manifest(kind, CREATED, meta, {ARCHIVE_NAME: describe_bytes(zipped)})
    shard.write_bytes(archive.with_comment(zipped, manifest.to_text().encode()))
    return shard


def forge_files(shard: Path, files: Mapping[str, bytes], meta: Json) -> Path:
    """:func:`forge` with a Zip file of these members."""
    return forge(shard, archive.pack(files), meta)
