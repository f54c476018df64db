"""The web server of the page: static files, a little JSON to read, and one WebSocket.

::

    GET /                                     the page, and its files
    GET /api/networks                         what may be played with
    GET /api/campaign                         a campaign's state in one line
    GET /report                               its report
    WebSocket /ws                             see chess_snn.web.protocol
"""

import asyncio
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

from chess_snn.credentials import check_host
from chess_snn.errors import ChessSnnError
from chess_snn.settings import check_range
from chess_snn.web.campaign_page import CampaignPage, report_policy
from chess_snn.web.guard import FRAMED, POLICY, Guard, own_names
from chess_snn.web.networks import Networks
from chess_snn.web.protocol import MAX_MESSAGE_BYTES
from chess_snn.web.searching import Place, Searcher
from chess_snn.web.session import Session

STATIC: Final = Path(__file__).parent / "static"
MAX_CONNECTIONS: Final = 24
"""Each may search at the same time as the others."""
_TRY_LATER: Final = 1013  # close code of RFC 6455
_STOP_S: Final = 5
_NO_CAMPAIGN: Final = "there is no campaign to watch"


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
    networks: Networks, campaign: CampaignPage | None, settings: WebSettings,
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
