"""One browser's connection: its requests, and at most one search under way.

Requests are answered in their order. A new search stops the one before it and waits for its end,
which takes one wave. The queue of answers is bounded. While the browser has half of it still to
fetch, the progress of a search is dropped; a result that finds the queue full ends the connection,
so that no request waits for an answer that was lost. Other answers wait for a place, and the
requests after them wait too.
"""

import asyncio
import logging
import threading
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from chess_snn.errors import ChessSnnError
from chess_snn.types import Json
from chess_snn.web.positions import describe_chess, describe_tiles, export_game, import_game
from chess_snn.web.protocol import (
    MAX_MESSAGE_BYTES,
    ChessGame,
    ExportRequest,
    ImportRequest,
    PositionRequest,
    ProtocolError,
    Request,
    SearchRequest,
    StopRequest,
    parse_request,
)
from chess_snn.web.searching import Searcher

_MOST_WAITING: Final = 64
"""Answers in the queue."""
_MOST_PROGRESS: Final = _MOST_WAITING // 2
"""Answers in the queue, from which on progress is dropped."""
_MOST_FAULTS: Final = 20
"""Bad frames before the connection is closed."""
_TOO_BIG, _BAD_FRAMES, _TRY_LATER = 1009, 1008, 1013  # close codes of RFC 6455
_LOG: Final = logging.getLogger(__name__)
_SEND_S: Final = 30.0
"""A browser that takes no data for so long is gone."""


class Session:
    """Serves one accepted WebSocket until it closes."""

    def __init__(self, socket: WebSocket, searcher: Searcher, threads: Executor) -> None:
        """The session closes ``searcher``; ``threads`` has a free thread for it."""
        self._socket, self._searcher, self._threads = socket, searcher, threads
        self._loop = asyncio.get_running_loop()
        self._answers: asyncio.Queue[Json | bytes] = asyncio.Queue(_MOST_WAITING)
        self._overrun = asyncio.Event()
        self._stop = threading.Event()
        self._search: asyncio.Task[None] | None = None
        self._cleaning: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Read, answer and search, until the browser is gone."""
        sender = asyncio.create_task(self._send_all())
        reader = asyncio.create_task(self._read_all())
        overrun = asyncio.create_task(self._overrun.wait())
        tasks = sender, reader, overrun
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # A server that shuts down cancels this task, and its search must end all the same.
            self._cleaning = asyncio.create_task(self._clean_up(*tasks))
            await asyncio.shield(self._cleaning)
        if reader not in ended:
            await self._close(_TRY_LATER, "the browser did not fetch its answers")

    async def _clean_up(self, *tasks: asyncio.Task[Any]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._end_search()
        await asyncio.to_thread(self._searcher.close)

    async def _read_all(self) -> None:
        num_faults = 0
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            text = message.get("text")
            if len(text or message.get("bytes") or "") > MAX_MESSAGE_BYTES:
                await self._close(_TOO_BIG, "message too large")
                return
            try:
                await self._handle(parse_request(text))
            except ProtocolError as error:
                num_faults += 1
                await self._answers.put(error_answer(None, error))
                if num_faults >= _MOST_FAULTS:
                    await self._answers.join()
                    await self._close(_BAD_FRAMES, "too many bad requests")
                    return

    async def _close(self, code: int, reason: str) -> None:
        # The browser closed it first, or takes no data.
        with suppress(RuntimeError, WebSocketDisconnect, TimeoutError):
            async with asyncio.timeout(_SEND_S):
                await self._socket.close(code, reason)

    async def _handle(self, request: Request) -> None:
        if isinstance(request, StopRequest):
            self._stop.set()
        elif isinstance(request, SearchRequest):
            await self._end_search()
            self._stop = threading.Event()
            self._search = asyncio.create_task(self._run_search(request, self._stop))
        else:
            await self._answers.put(await asyncio.to_thread(answer, request))

    async def _run_search(self, request: SearchRequest, stop: threading.Event) -> None:
        def send(message: Json | bytes) -> None:
            self._loop.call_soon_threadsafe(self._offer, message)

        try:
            await self._loop.run_in_executor(
                self._threads, self._searcher.search, request, stop, send
            )
        except Exception as error:  # noqa: BLE001 -- who waits for a result must get an answer
            if not isinstance(error, ChessSnnError):
                _LOG.exception("a search failed")
            self._offer(error_answer(request.id, error))

    def _offer(self, message: Json | bytes) -> None:
        """Queue what a search found; drops progress, and ends the connection, as said above."""
        if isinstance(message, bytes) or message["type"] == "info":
            if self._answers.qsize() < _MOST_PROGRESS:
                self._answers.put_nowait(message)
        elif self._answers.full():
            self._overrun.set()
        else:
            self._answers.put_nowait(message)

    async def _end_search(self) -> None:
        self._stop.set()
        if self._search is not None:
            await asyncio.gather(self._search, return_exceptions=True)
            self._search = None

    async def _send_all(self) -> None:
        """Send answers until the browser is gone."""
        with suppress(WebSocketDisconnect, RuntimeError, OSError, TimeoutError):
            while True:
                message = await self._answers.get()
                try:
                    async with asyncio.timeout(_SEND_S):
                        if isinstance(message, bytes):
                            await self._socket.send_bytes(message)
                        else:
                            await self._socket.send_json(message)
                finally:
                    self._answers.task_done()


def answer(request: PositionRequest | ImportRequest | ExportRequest) -> Json:
    """The answer to a request that needs no search; an ``error`` where it cannot be done."""
    try:
        return {"id": request.id, **_answer(request)}
    except ChessSnnError as error:
        return error_answer(request.id, error)


def _answer(request: PositionRequest | ImportRequest | ExportRequest) -> Json:
    match request:
        case PositionRequest(game=game):
            described = (
                describe_chess(game) if isinstance(game, ChessGame) else describe_tiles(game)
            )
            return {"type": "position", **described}
        case ImportRequest(text=text):
            return {"type": "imported", **import_game(text)}
        case ExportRequest():
            today = datetime.now(UTC).astimezone().strftime("%Y.%m.%d")
            return {"type": "exported", "pgn": export_game(request, today)}


def error_answer(number: int | None, error: Exception) -> Json:
    """An ``error`` message that answers request ``number``."""
    code = error.code if isinstance(error, ChessSnnError) else type(error).__name__
    return {"type": "error", "id": number, "code": code, "message": str(error)}
