"""The web server of the page: static files, a little JSON to read, and one WebSocket.

::

    GET /                                     the page, and its files
    GET /api/networks                         what may be played with
    GET /api/campaign                         a campaign's state, or an experiment's, in one line
    GET /report                               its report
    WebSocket /ws                             see chess_snn.web.protocol
"""

import asyncio
import base64
import hashlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.plans import campaign_length
from chess_snn.campaign.viewing.lines import duration
from chess_snn.campaign.viewing.up_to_date import newest_change
from chess_snn.campaign.viewing.watching import CampaignView, CampaignWatch
from chess_snn.credentials import check_host
from chess_snn.data import read_json
from chess_snn.errors import ChessSnnError
from chess_snn.experiment.judging import FILE, RESULTS
from chess_snn.experiment.results import read_results
from chess_snn.report.experiment_page import experiment_html
from chess_snn.report.page import report_html, report_script, report_style
from chess_snn.settings import check_range
from chess_snn.types import Json
from chess_snn.web.guard import FRAMED, POLICY, Guard, own_names
from chess_snn.web.networks import Networks
from chess_snn.web.protocol import MAX_MESSAGE_BYTES
from chess_snn.web.searching import Place, Searcher
from chess_snn.web.session import Session
from chess_snn.wording import counted

STATIC: Final = Path(__file__).parent / "static"
MAX_CONNECTIONS: Final = 24
"""Each may search at the same time as the others."""
_TRY_LATER: Final = 1013  # close code of RFC 6455
_STOP_S: Final = 5
_NO_CAMPAIGN: Final = "there is no campaign to watch"


class CampaignPage:
    """One campaign for the page, from its folder alone: its live line, and its report.

    It works as ``chess-snn watch`` does: nothing is written and no lock is taken. Its methods may
    be called in any thread.
    """

    def __init__(self, directory: Path) -> None:
        """Open the campaign in ``directory``.

        Raises:
            CampaignError: there is none.
        """
        self.folder = CampaignFolder.open(directory)
        self._watch = CampaignWatch(directory)
        self._look_lock, self._report_lock = threading.Lock(), threading.Lock()
        self._next_s, self._last = 0.0, Json()
        self._report, self._made_of = "", (0, 0)

    def state(self) -> Json:
        """The campaign now, in one line.

        Raises:
            CampaignError: its folder is gone, or cannot be read.
            CorruptDataError: a file of it is damaged.
        """
        with self._look_lock:
            if time.monotonic() >= self._next_s:
                self._last = _describe(self._watch.look())
                self._next_s = time.monotonic() + _LOOK_PERIOD_S
            return self._last

    def report(self) -> str:
        """The report as HTML; it is made again only after the folder changed, one at a time.

        Raises:
            CorruptDataError: a plan or a receipt is damaged.
        """
        with self._report_lock:
            made_of = newest_change(self.folder)
            if not self._report or made_of != self._made_of:
                self._report, self._made_of = report_html(self.folder), made_of
            return self._report


class ExperimentPage:
    """One experiment for the page, from its folder alone, as :class:`CampaignPage`."""

    folder: Final = None
    """Its networks are not offered: those of a run are, by that campaign's own page."""

    def __init__(self, directory: Path) -> None:
        self._out = directory

    def state(self) -> Json:
        """The experiment now, in one line.

        Raises:
            CorruptDataError: its file is damaged.
        """
        results = self._out / RESULTS
        if is_finished := results.exists():
            body = read_results(self._out)
            runs, matches = len(body["runs"]), len(body["matches"])
        else:
            runs = sum(path.is_dir() for path in (self._out / "runs").glob("*"))
            matches = len(list((self._out / "matches").glob("*.json")))
        name = read_json(self._out / FILE)["experiment"]["header"]["name"]
        counts = f"{counted(runs, 'run')} · {counted(matches, 'match')}"
        return {
            "line": f"{name} · {'' if is_finished else 'not '}finished · {counts}",
            "progress": float(is_finished),
            "version": str(results.stat().st_mtime if is_finished else 0),
        }

    def report(self) -> str:
        """The page as HTML.

        Raises:
            UsageError: there are no results yet.
        """
        return experiment_html(read_results(self._out))


def report_policy() -> str:
    """The content security policy of a report: its own style and script, and a frame of ours."""
    style, script = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (report_style(), report_script())
    )
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )


def _describe(view: CampaignView) -> Json:
    pace = sum(worker.games_per_s for worker in view.workers)
    left = None if view.is_finished or view.seconds_left is None else view.seconds_left
    line = [
        view.state_text, f"{view.progress:.0%} of {campaign_length(view.folder)}",
        f"ran for {duration(view.elapsed_s)}",
        None if left is None else f"{duration(left)} left",
        f"{pace:.1f} games/s by {counted(len(view.workers), 'worker')}" if view.workers else None,
        *map(str, view.stages),
    ]
    return {
        "line": " · ".join(filter(None, line)),
        "progress": view.progress,
        "version": f"{len(view.receipts)} {view.champion} {view.is_finished}",
    }


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Settings of the page's server."""

    host: str = "127.0.0.1"
    """Address of this machine; off loopback the page demands credentials."""
    port: int = 8642
    credentials: str | None = None
    """``user:password``."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, or would open the page to everyone."""
        check_range("--port", self.port, ge=1, le=65_535)
        check_host(
            self.host, (self.port,), "the page needs", has_password=self.credentials is not None
        )

    @property
    def url(self) -> str:
        """Return the address of the page."""
        return f"http://{self.host}:{self.port}/"


def make_app(
    networks: Networks, campaign: CampaignPage | ExperimentPage | None, settings: WebSettings,
    place: Place | None = None,
) -> Starlette:
    """The ASGI application."""
    threads = ThreadPoolExecutor(MAX_CONNECTIONS, thread_name_prefix="search")
    place, num_connected = place or Place(), 0

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        threads.shutdown(wait=False, cancel_futures=True)

    async def list_networks(_request: Request) -> Response:
        return await _answer(networks.catalogue)

    async def show_campaign(_request: Request) -> Response:
        return await _answer(None if campaign is None else campaign.state)

    async def show_report(_request: Request) -> Response:
        if campaign is None:
            return PlainTextResponse(f"{_NO_CAMPAIGN}\n", 404)
        try:
            html = await asyncio.to_thread(campaign.report)
        except (ChessSnnError, OSError) as error:
            return PlainTextResponse(f"{error}\n", 409, {POLICY: FRAMED})
        return HTMLResponse(html, headers={POLICY: report_policy()})

    async def converse(socket: WebSocket) -> None:
        nonlocal num_connected
        await socket.accept()
        if num_connected >= MAX_CONNECTIONS:
            await socket.close(_TRY_LATER, f"{MAX_CONNECTIONS} pages are open; close one")
            return
        num_connected += 1
        try:
            await Session(socket, Searcher(networks, place), threads).run()
        finally:
            num_connected -= 1

    return Starlette(
        routes=[
            Route("/api/networks", list_networks),
            Route("/api/campaign", show_campaign),
            Route("/report", show_report),
            WebSocketRoute("/ws", converse),
            Mount("/", StaticFiles(directory=STATIC, html=True)),
        ],
        middleware=[
            Middleware(Guard, own_names(settings.host), credentials=settings.credentials)
        ],
        lifespan=lifespan,
    )


async def _answer(read: Callable[[], object] | None) -> Response:
    """Answer with what ``read`` returns, as JSON; 404 without a campaign, one line for an error."""
    if read is None:
        return JSONResponse({"code": "absent", "message": _NO_CAMPAIGN}, 404)
    try:
        return JSONResponse(await asyncio.to_thread(read))
    except (ChessSnnError, OSError) as error:
        code = error.code if isinstance(error, ChessSnnError) else "failed"
        return JSONResponse({"code": code, "message": str(error)}, 409)


def serve(app: ASGIApp, settings: WebSettings) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    uvicorn.run(
        app, host=settings.host, port=settings.port, log_level="warning", access_log=False,
        server_header=False, ws="websockets-sansio", ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=False, timeout_graceful_shutdown=_STOP_S,
    )


_LOOK_PERIOD_S: Final = 1.0
"""Browsers that ask more often get the same answer."""
