"""Files of the campaign for workers that do not see its folder, by way of the Dask scheduler.

Workers and campaign each have a connection to the scheduler, and need none to each other::

    worker ── get ──▶ scheduler ── event: wanted ──▶ campaign
       ◀── pieces ──  FileRelay ◀────── put ────────  reads its folder

The relay keeps the pieces asked for last, so what many workers want leaves the campaign once.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from distributed import Client, Scheduler, Worker
from distributed.diagnostics.plugin import SchedulerPlugin
from distributed.utils import sync

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.worker_cache import Fetch, WantedFile, read_shown
from chess_snn.data.manifest import describe_bytes
from chess_snn.errors import CampaignError

_PIECE_BYTES: Final = 4 << 20
"""A message carries no more of a file, and not more files than come to this."""
_KEPT_BYTES: Final = 256 << 20
"""Of pieces in the scheduler's memory."""
_PATIENCE_S: Final = 120.0
"""How long the campaign may take to send a piece."""
_ASK_AGAIN_S: Final = 5.0
"""Who waits for a piece longer has it asked for once more by whoever wants it next."""
_TOPIC: Final = "campaign-files"
_GET: Final = "campaign_files_get"
_PUT: Final = "campaign_files_put"
_FORGET: Final = "campaign_files_forget"


class Piece(NamedTuple):
    """Part of a file of a campaign."""

    campaign_id: str
    path: str
    sha256: str
    """Of the whole file."""
    first: int
    num_bytes: int


class FileRelay(SchedulerPlugin):  # type: ignore[misc]  # distributed has no types
    """The scheduler's part."""

    name = _TOPIC
    idempotent = True

    def __init__(self, kept_bytes: int = _KEPT_BYTES, patience_s: float = _PATIENCE_S) -> None:
        self._kept_bytes, self._patience_s = kept_bytes, patience_s
        self._kept: OrderedDict[Piece, bytes] = OrderedDict()
        """What was asked for last is last."""
        self._num_bytes = 0
        self._awaited: dict[Piece, _Awaited] = {}

    async def start(self, scheduler: Scheduler) -> None:
        """Be asked by workers, and told by the campaign."""
        self._scheduler = scheduler
        scheduler.handlers |= {_GET: self.get, _PUT: self.put, _FORGET: self.forget}

    async def get(self, pieces: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """``contents`` of the pieces in their order, or why one is ``refused`` or ``late``."""
        wanted = [Piece(*piece) for piece in pieces]
        found = {piece: self._kept[piece] for piece in wanted if piece in self._kept}
        for piece in found:
            self._kept.move_to_end(piece)
        awaited = {piece: self._await(piece) for piece in wanted if piece not in found}
        try:
            async with asyncio.timeout(self._patience_s):
                for piece, future in awaited.items():
                    found[piece] = await asyncio.shield(future)
        except CampaignError as error:
            return {"refused": str(error)}
        except TimeoutError:
            return {"late": (
                f"{wanted[0].path} of the campaign did not come within {self._patience_s:.0f} s: "
                "the campaign's process is frozen, ended, or cut off from the scheduler"
            )}
        return {"contents": [found[piece] for piece in wanted]}

    async def put(self, piece: Sequence[Any], content: bytes, error: str) -> None:
        """Take a piece from the campaign, or why there is none."""
        key = Piece(*piece)
        awaited = self._awaited.pop(key, None)
        if awaited is not None and error:
            awaited.content.set_exception(CampaignError(error))
            awaited.content.exception()  # counts as seen, should nobody wait any more
        elif awaited is not None:
            awaited.content.set_result(content)
        if not error and key not in self._kept:
            self._kept[key] = content
            self._num_bytes += len(content)
            while self._num_bytes > self._kept_bytes:
                _, dropped = self._kept.popitem(last=False)
                self._num_bytes -= len(dropped)

    async def forget(self, campaign_id: str, path: str) -> None:
        """Drop a file that was not what it should be; the campaign may have mended it."""
        for piece in [piece for piece in self._kept if piece[:2] == (campaign_id, path)]:
            self._num_bytes -= len(self._kept.pop(piece))

    def _await(self, piece: Piece) -> "asyncio.Future[bytes]":
        now = time.monotonic()
        awaited = self._awaited.get(piece)
        if awaited is None:
            future = asyncio.get_running_loop().create_future()
            awaited = self._awaited[piece] = _Awaited(future)
        if now >= awaited.ask_again_s:
            # The campaign that was asked before may be gone, and this one another process of it.
            awaited.ask_again_s = now + _ASK_AGAIN_S
            self._scheduler.log_event(_topic(piece.campaign_id), list(piece))
        return awaited.content


@dataclass(slots=True)
class _Awaited:
    """A piece that the campaign was asked for."""

    content: "asyncio.Future[bytes]"
    ask_again_s: float = 0.0
    """By the monotonic clock."""


@contextmanager
def files_served(client: Client, folder: CampaignFolder) -> Iterator[None]:
    """Answer workers that ask for files of ``folder``, for the length of the block."""
    answers: set[asyncio.Task[None]] = set()

    async def answer(piece: Piece) -> None:
        content, error = b"", ""
        try:
            content = await asyncio.to_thread(
                read_shown, folder, piece.path, piece.first, piece.num_bytes
            )
        except CampaignError as refused:
            error = str(refused)
        await getattr(client.scheduler, _PUT)(piece=list(piece), content=content, error=error)

    def wanted(event: tuple[float, Sequence[Any]]) -> None:
        task = asyncio.get_running_loop().create_task(answer(Piece(*event[1])))
        answers.add(task)  # a task that nobody holds may be collected
        task.add_done_callback(answers.discard)

    client.register_plugin(FileRelay())
    client.subscribe_topic(_topic(folder.campaign_id), wanted)
    try:
        yield
    finally:
        if client.status == "running":
            client.unsubscribe_topic(_topic(folder.campaign_id))


def fetch_through(worker: Worker, campaign_id: str) -> Fetch:
    """How a task that runs on ``worker`` gets files of a campaign."""

    def fetch(files: Sequence[WantedFile]) -> Iterator[bytes]:
        content = b""
        for batch in batches(campaign_id, files):
            get = getattr(worker.scheduler, _GET)
            answer = sync(worker.loop, get, pieces=[list(piece) for piece, _ in batch])
            if "refused" in answer:
                raise CampaignError(answer["refused"])
            if "late" in answer:
                raise TimeoutError(answer["late"])  # the same again may do better
            for (piece, is_last), part in zip(batch, answer["contents"], strict=True):
                content += part
                if is_last:
                    if describe_bytes(content).sha256 != piece.sha256:
                        forget = getattr(worker.scheduler, _FORGET)
                        sync(worker.loop, forget, campaign_id=campaign_id, path=piece.path)
                    yield content
                    content = b""

    return fetch


def batches(campaign_id: str, files: Sequence[WantedFile]) -> Iterator[list[tuple[Piece, bool]]]:
    """The pieces of ``files``, in order, each with whether it ends its file, a message's at a time.

    No message is of more than 4 MiB.
    """
    batch: list[tuple[Piece, bool]] = []
    room = _PIECE_BYTES
    for file in files:
        whole = file.content.num_bytes
        for first in range(0, max(1, whole), _PIECE_BYTES):
            size = min(_PIECE_BYTES, whole - first)
            if size > room:
                yield batch
                batch, room = [], _PIECE_BYTES
            piece = Piece(campaign_id, file.path, file.content.sha256, first, size)
            batch.append((piece, first + size == whole))
            room -= size
    if batch:
        yield batch


def _topic(campaign_id: str) -> str:
    return f"{_TOPIC}/{campaign_id}"
