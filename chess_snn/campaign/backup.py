"""A campaign's backup in an object store, and how it is restored.

The campaign folder is the truth, the backup is never ahead of it::

    s3://bucket/prefix/
      campaign.toml                       whose backup this is
      writer/last.json                    who wrote last, for people
      games/iter-000012/shard-0003        as in the folder, with its manifest
      checkpoints/gen-000012/             likewise
      records/000012/                     plans, matches, receipts, promotions that were new then

A set of records is put after everything that its receipts name, so an iteration whose receipt is in
the store can be restored completely. Nothing is ever deleted there, and only the first two are ever
changed. :mod:`chess_snn.campaign.artifacts.table` says what is backed up.
"""

import importlib
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.campaign.artifacts import table
from chess_snn.campaign.configuration.pace import StorageSettings
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.typed_json import FileMark, file_mark
from chess_snn.data import (
    MANIFEST_NAME,
    StoredFile,
    create_text,
    is_committed,
    is_own_digest,
    sweep_temporaries,
    write_text,
)
from chess_snn.data.files import make_folder, parse_json, writing
from chess_snn.data.formats import DIGEST
from chess_snn.data.manifest import describe_bytes
from chess_snn.data.object_store import ObjectStore
from chess_snn.errors import CampaignError, CorruptDataError, StorageError
from chess_snn.types import LogFn, Progress

_RECORD_SETS: Final = "records"
_RECORD_KIND: Final = "records"
_SIDE_BY_SIDE: Final = 8
"""Sets of records that are requested at once."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What one round put into the store."""

    num_folders: int
    num_records: int
    num_bytes: int


def open_store(settings: StorageSettings, while_waiting: LogFn | None = None) -> ObjectStore:
    """The object store of the settings, which name one; it has not been asked anything.

    While a store that is away is waited for, ``while_waiting`` is called again and again with what
    is wrong; without it, nothing is waited for.

    Raises:
        StorageError: the library is not installed, or the environment has no credentials.
    """
    try:
        bucket = importlib.import_module("chess_snn.data.bucket")
    except ModuleNotFoundError as error:
        raise StorageError(
            f"storage.object_store = {settings.object_store} needs a library that is not "
            "installed: pip install 'chess-snn[s3]'"
        ) from error
    return ObjectStore(bucket.Bucket(
        settings.object_store, settings.endpoint,
        patience_s=settings.patience_s if while_waiting else 0.0, while_waiting=while_waiting,
    ))


def check_store(settings: StorageSettings) -> None:
    """See that the object store, where the settings name one, may be written and read.

    Raises:
        StorageError: it may not; says what is the matter.
    """
    if settings.object_store:
        open_store(settings).check()


class Backup:
    """Sends what the store lacks of one campaign; used by its one writer."""

    def __init__(self, folder: CampaignFolder, store: ObjectStore) -> None:
        """Find out what is already there.

        Raises:
            StorageError: the prefix holds another campaign, or the store refuses or is away.
        """
        self._folder, self._store = folder, store
        self._claim()
        # What another folder of the campaign has sent, and this one commits later, is compared.
        self._sent = set(_committed_there(store)) & set(self._committed_here())
        self._record_sets = sorted(store.committed(f"{_RECORD_SETS}/*"))
        self._recorded: dict[str, StoredFile] = {}
        self._looked_at: dict[str, FileMark] = {}
        """Marks of records whose content was found to be there."""
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
            for manifest in threads.map(store.get_manifest, self._record_sets):
                self._recorded |= manifest.files

    def num_missing(self) -> int:
        """Committed folders that the store lacks."""
        return sum(name not in self._sent for name in self._committed_here())

    def send_missing(self, on_progress: Progress | None = None) -> Sent:
        """Send what was committed since the last time.

        Raises:
            StorageError: the store refuses, or was away for longer than it is waited for. What was
                sent stays; the next call goes on.
            CorruptDataError: something in the folder is damaged; it is not sent.
        """
        # Listed before the folders: what a receipt names was committed before it.
        records = dict(self._new_records())
        missing = [name for name in self._committed_here() if name not in self._sent]
        num_bytes = 0
        for done, name in enumerate(missing):
            if on_progress is not None:
                on_progress(done, len(missing))
            num_bytes += self._store.put_folder(name, self._folder.path / name)
            self._sent.add(name)
        if records:
            number = len(self._record_sets)
            name = f"{_RECORD_SETS}/{number:06d}"
            num_bytes += self._store.put_files(name, _RECORD_KIND, records)
            self._record_sets.append(name)
            self._recorded |= {path: describe_bytes(text) for path, text in records.items()}
        return Sent(len(missing), len(records), num_bytes)

    def _claim(self) -> None:
        text = (self._folder.path / CONFIG_FILE).read_bytes()
        bucket = self._store.bucket
        if bucket.put_new(CONFIG_FILE, text):
            return
        there = bucket.get(CONFIG_FILE) or b""
        owner = _campaign_id(there, f"{bucket.url}/{CONFIG_FILE}")
        if owner != self._folder.campaign_id:
            raise StorageError(
                f"{bucket.url} holds the backup of another campaign ({owner}); choose another "
                "prefix for storage.object_store"
            )
        if there != text:  # where it runs may have changed
            bucket.put(CONFIG_FILE, text)

    def _committed_here(self) -> Iterator[str]:
        for artifact in table.backed_up(is_folder=True):
            for stored in table.all_stored(self._folder, artifact):
                if is_committed(stored.path(self._folder)):
                    yield stored.name

    def _new_records(self) -> Iterator[tuple[str, bytes]]:
        for artifact in table.backed_up(is_folder=False):
            for stored in table.all_stored(self._folder, artifact):
                path = stored.path(self._folder)
                mark = file_mark(path)
                if self._looked_at.get(stored.name) == mark:
                    continue
                content = path.read_bytes()
                if self._recorded.get(stored.name) == describe_bytes(content):
                    self._looked_at[stored.name] = mark
                else:
                    self._refuse_damage(path, content)
                    yield stored.name, content

    def _refuse_damage(self, path: Path, content: bytes) -> None:
        """A copy of a corrupt file would hide the intact one that was sent before it."""
        hint = f"repair it: chess-snn verify {self._folder.path} --repair"
        body = parse_json(content, str(path), hint)
        if DIGEST in body and not is_own_digest(body):
            raise CorruptDataError(
                f"{path} is damaged: its digest is not that of its content, so it is not sent; "
                f"{hint}"
            )


def restore(
    store: ObjectStore, path: Path, on_progress: Progress | None = None
) -> CampaignFolder:
    """Make a campaign folder from its backup; it may be resumed then.

    ``path`` is missing, empty, or begun by an earlier call; what that has restored is not fetched
    again. The folder is a campaign once everything is there. ``on_progress`` is called with
    (folders done, in all).

    Raises:
        CampaignError: there is a campaign in ``path``, or something else.
        UsageError: ``path`` is not a folder, or may not be written.
        StorageError: the store has no campaign, refuses or is away.
        CorruptDataError: something in the store is missing or damaged; it is named.
    """
    text = store.bucket.get(CONFIG_FILE)
    if text is None:
        raise StorageError(f"{store.bucket.url} holds no campaign: it has no {CONFIG_FILE}")
    _campaign_id(text, f"{store.bucket.url}/{CONFIG_FILE}")
    path = path.absolute()
    with writing(path):
        if (path / CONFIG_FILE).exists():
            raise CampaignError(f"{path} holds a campaign; choose a new folder with --dir")
        make_folder(path)
        sweep_temporaries(path)
        found = {entry.name for entry in path.iterdir()}
    if strange := found - set(table.top_folders()):
        raise CampaignError(
            f"{path} is not empty ({min(strange)}); choose a new folder with --dir"
        )
    # Records first: what a running campaign sends meanwhile has its folders before its records.
    record_sets = sorted(store.committed(f"{_RECORD_SETS}/*"))
    names = sorted(_committed_there(store))
    for done, name in enumerate(names):
        if on_progress is not None:
            on_progress(done, len(names))
        if not is_committed(path / name):
            store.get_folder(name, path / name)
    record_folders = {artifact.top for artifact in table.backed_up(is_folder=False)}
    for name in record_sets:
        files = store.get_files(name)
        del files[MANIFEST_NAME]
        for record, content in files.items():
            if record.split("/")[0] not in record_folders:
                raise CorruptDataError(f"{store.bucket.url}/{name} holds {record!r}, no record")
            write_text(path / record, content.decode())
    create_text(path / CONFIG_FILE, text.decode())
    return CampaignFolder.open(path)


def _committed_there(store: ObjectStore) -> Iterator[str]:
    for artifact in table.backed_up(is_folder=True):
        for name in store.committed(artifact.glob):
            stored = table.named(name)
            if stored is not None and stored.artifact is artifact:
                yield name


def _campaign_id(text: bytes, place: str) -> str:
    try:
        identity = tomllib.loads(text.decode())["identity"]["id"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptDataError(f"{place} is not a campaign's configuration: {error}") from error
    return str(identity)
