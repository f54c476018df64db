"""Files and folders that are either there, whole and on the disk, or not there at all.

Everything new is written under a temporary name beside its target and renamed when it is complete
and synced. The temporary name carries host and process, so that :func:`sweep_temporaries` can tell
the leftovers of a dead writer from the work of a living one::

    .tmp-<target>@<host>-<pid>-<8 hex digits>
"""

import errno
import json
import math
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.failpoints import failpoint
from chess_snn.types import Json

_TEMPORARY_NAME = re.compile(r"\.tmp-.+@(?P<host>[^@]+)-(?P<pid>\d{1,9})-[0-9a-f]{8}")

_HINTS = {
    errno.ENOSPC: "free space on that disk, then run again",
    errno.EDQUOT: "free some of the disk quota, then run again",
    errno.EFBIG: "raise the file-size limit (ulimit -f), then run again",
    errno.EACCES: "choose a folder that this user may write to",
    errno.EPERM: "choose a folder that this user may write to",
    errno.EROFS: "choose a folder that is not mounted read-only",
    errno.ENOTDIR: "choose a place where no part of the path is a file",
    errno.EEXIST: "choose a place where no part of the path is a file",
    errno.EISDIR: "choose a place that is not taken by a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "delete that link",
    errno.EMLINK: "delete that name, so that a file takes its place",
    errno.ENXIO: "delete that pipe or device",
}

RESTORE_OR_DELETE = "restore it from a copy, or delete it so that it is made again"

_MOST_JSON_BYTES = 1 << 28
"""A match of 100,000 games has less."""

_UNREADABLE = {errno.EIO, errno.ELOOP}
"""Error numbers of a file that the file system cannot give, and never will."""

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
"""Error numbers of file systems that have none."""


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Say in one line why ``target`` could not be written, and what helps.

    Raises:
        UsageError: the disk is full, a size limit was met, or the place may not be written.
    """
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0)
        if hint is None:
            raise
        raise UsageError(f"cannot write {target}: {error.strerror}; {hint}") from error


def temporary_sibling(target: Path) -> Path:
    """A fresh name beside ``target``; nothing is created."""
    owner = f"{socket.gethostname()}-{os.getpid()}"
    return target.with_name(f".tmp-{target.name}@{owner}-{secrets.token_hex(4)}")


def sweep_temporaries(parent: Path) -> list[Path]:
    """Remove what dead writers left in ``parent``, and return the paths removed.

    Only names with this host's name and a process id that is not alive here are touched: on a
    shared disk the leftovers of another machine are that machine's to sweep.
    """
    removed = []
    for path in dead_temporaries(parent):
        with suppress(FileNotFoundError):  # another sweep was faster
            _remove(path)
            removed.append(path)
    return removed


def dead_temporaries(parent: Path) -> list[Path]:
    """Return what :func:`sweep_temporaries` would remove from ``parent``."""
    import psutil  # noqa: PLC0415 - reading need not wait for it

    names = ((path, _TEMPORARY_NAME.fullmatch(path.name)) for path in parent.glob(".tmp-*"))
    return sorted(
        path for path, name in names
        if name is not None
        and name["host"] == socket.gethostname()
        and not psutil.pid_exists(int(name["pid"]))
    )


def remove(path: Path) -> None:
    """Remove the file or folder at ``path``: its name goes at once, what it held after that.

    Raises:
        UsageError: this user may not.
    """
    with writing(path):
        doomed = temporary_sibling(path)
        path.rename(doomed)
        sync_folder(path.parent)
        _remove(doomed)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def walk(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what :func:`os.walk` yields of ``folder``; a folder that cannot be listed is an error.

    Raises:
        OSError: a folder is gone, or cannot be listed.
    """
    return os.walk(folder, onerror=_raise)


def _raise(error: OSError) -> NoReturn:
    raise error


def sync_folder(folder: Path) -> None:
    """Force the names in ``folder`` to the disk."""
    sync_file(folder, os.O_RDONLY | os.O_DIRECTORY)


def sync_file(path: Path, flags: int = os.O_RDONLY) -> None:
    """Force the content of the file ``path`` to the disk."""
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create ``folder`` and its missing parents, each on the disk before the next.

    Raises:
        NotADirectoryError: a part of the path is a file.
    """
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
    sync_folder(folder.parent)


@contextmanager
def staged_file(target: Path) -> Iterator[Path]:
    """A temporary name beside ``target`` to write to; a file that keeps it is removed at the end.

    Raises:
        UsageError: the place cannot be written; what was there is intact.
    """
    with writing(target):
        make_folder(target.parent)
        stage = temporary_sibling(target)
        try:
            yield stage
        finally:
            stage.unlink(missing_ok=True)


def write_synced(path: Path, parts: Iterable[bytes]) -> None:
    """Write ``parts`` to a new file and force its bytes to the disk; its name is not synced."""
    with path.open("xb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, obj: Json) -> None:
    """Put ``obj`` at ``path`` in one step, replacing what was there; a crash leaves old or new.

    Raises:
        UsageError: the place cannot be written; what was there is intact.
    """
    write_text(path, json.dumps(obj, indent=2, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Put ``text`` at ``path`` as :func:`write_json` does."""
    write_parts(path, [text])


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """Put the text that ``parts`` make up at ``path`` as :func:`write_json` does."""
    _replace(path, (part.encode() for part in parts))


def write_bytes(path: Path, body: bytes) -> None:
    """Put ``body`` at ``path`` as :func:`write_json` does."""
    _replace(path, [body])


def _replace(path: Path, parts: Iterable[bytes]) -> None:
    with staged_file(path) as stage:
        write_synced(stage, parts)
        failpoint("file.written")
        stage.replace(path)
        sync_folder(path.parent)


def create_text(path: Path, text: str) -> bool:
    """Put ``text`` at ``path`` in one step unless something is there; whether it was free.

    Of several that do so at the same instant one succeeds. Only where the file system has no hard
    links can two of them take it for free, and the last one's text stays.

    Raises:
        UsageError: the place cannot be written.
    """
    with staged_file(path) as stage:
        write_synced(stage, [text.encode()])
        was_free = take_name(stage, path)
        sync_folder(path.parent)
    return was_free


def take_name(temporary: Path, path: Path) -> bool:
    """Give the file ``temporary`` the name ``path`` unless something has it; whether it was free.

    Two processes that do so at the same instant behave as in :func:`create_text`.
    ``temporary`` may still be there afterwards.
    """
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        if path.exists():
            return False
        temporary.rename(path)
    return True


def read_json(path: Path, hint: str = RESTORE_OR_DELETE) -> Json:
    """The JSON object at ``path``.

    Args:
        path: of the file.
        hint: for people, what helps where it is damaged.

    Raises:
        CorruptDataError: it is missing, not a JSON object, or the disk cannot give it.
    """
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):  # of a pipe there may be no end
            raise CorruptDataError(f"{path} is not a file; {hint}")
        if facts.st_size > _MOST_JSON_BYTES:  # a sparse file can be larger than the memory
            raise CorruptDataError(
                f"{path} has {facts.st_size:,} bytes, more than are written; {hint}"
            )
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise CorruptDataError(f"{path} is missing; {hint}") from None
    except OSError as error:
        if error.errno not in _UNREADABLE:
            raise
        raise CorruptDataError(f"{path} cannot be read ({error.strerror}); {hint}") from error
    return parse_json(content, str(path), hint)


def parse_json(content: bytes, place: str, hint: str = RESTORE_OR_DELETE) -> Json:
    """The JSON object in ``content``, the bytes of ``place``; see :func:`read_json`.

    Raises:
        CorruptDataError: it is none.
    """
    try:
        obj = json.loads(content, parse_constant=_refuse, parse_float=_exact)
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(f"{place} is not JSON ({error}); {hint}") from None
    if not isinstance(obj, dict):
        raise CorruptDataError(
            f"{place} must hold a JSON object, found {type(obj).__name__}; {hint}"
        )
    return obj


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _exact(text: str) -> float:
    """The number written as ``text``; this program never writes another text for it."""
    value = float(text)
    if math.isinf(value):
        _refuse(text)
    if repr(value) != text:  # else a flipped bit in the last digits could go unnoticed
        raise ValueError(f"{text} was written as {value!r}")
    return value
