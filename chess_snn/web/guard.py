"""Guard of a server of this machine: checks of Host, Origin and credentials, and headers.

A page of another site may let a browser on this machine send requests to loopback. They have no
effect: the Host must be this server's (DNS rebinding), and a request that has an Origin, as those
that write and those that open a WebSocket have in every browser, must come from a page of this
server.
"""

import base64
import secrets
from collections.abc import Iterable, Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import SplitResult, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from chess_snn.ports import is_loopback

_COOKIE: Final = "chess-snn"
_POLICY_VIOLATION: Final = 1008
POLICY: Final = "Content-Security-Policy"
FRAMED: Final = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
"""Policy of a text that the page shows in a frame."""
HEADERS: Final = {
    POLICY:
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Headers of every answer of the page; no inline script or style runs. An answer may have a policy
of its own instead."""
_LOOPBACK_NAMES: Final = frozenset(("127.0.0.1", "localhost", "::1"))


def own_names(host: str) -> frozenset[str]:
    """Names by which browsers may ask for a server that listens on ``host``."""
    return _LOOPBACK_NAMES | {host} if is_loopback(host) else frozenset((host,))


class Guard:
    """ASGI middleware that answers requests that may not come in."""

    def __init__(
        self, app: ASGIApp, hosts: Iterable[str], *, credentials: str | None = None,
        headers: Mapping[str, str] = HEADERS,
    ) -> None:
        """``hosts`` are the names of this server, without ports; ``credentials`` ``user:password``.

        A browser that has given the credentials once gets a cookie, for not every browser repeats
        them when it opens a WebSocket. Without credentials ``app`` may demand its own. ``headers``
        are those of every answer.
        """
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)
        self._credentials, self._headers = credentials, headers
        self._ticket = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on what may come in."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(headers)
        if refusal is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refusal[1]})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered = MutableHeaders(scope=message)
                own = answered.get(POLICY)
                answered.update(self._headers)
                if own is not None:
                    answered[POLICY] = own
                if refusal is None and self._credentials is not None:
                    answered.append(
                        "Set-Cookie",
                        f"{_COOKIE}={self._ticket}; HttpOnly; SameSite=Strict; Path=/",
                    )
            await send(message)

        if refusal is None:
            await self._app(scope, receive, send_with_headers)
            return
        status, text = refusal
        more = {"WWW-Authenticate": 'Basic realm="chess-snn", charset="UTF-8"'}
        response = PlainTextResponse(f"{text}\n", status, more if status == 401 else None)
        await response(scope, receive, send_with_headers)

    def _refusal(self, headers: Headers) -> tuple[int, str] | None:
        """Status and reason; None for what may come in."""
        host = headers.get("host", "")
        address = _split(f"//{host}")
        if address is None or address.hostname not in self._hosts:
            return 400, "this server has another name; use the address that it printed"
        origin = headers.get("origin")
        if origin is not None and not _is_of(origin, host):
            return 403, "only pages of this server may use it"
        if self._credentials is not None and not self._knows(headers):
            return 401, "user and password, please"
        return None

    def _knows(self, headers: Headers) -> bool:
        assert self._credentials is not None
        given = _basic(headers.get("authorization", ""))
        if secrets.compare_digest(given, self._credentials.encode()):
            return True
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(_COOKIE)
        except CookieError:
            return False
        return morsel is not None and secrets.compare_digest(
            morsel.value.encode(), self._ticket.encode()
        )


def _split(address: str) -> SplitResult | None:
    """The parts of an address; None where it is malformed."""
    try:
        return urlsplit(address)
    except ValueError:
        return None


def _is_of(origin: str, host: str) -> bool:
    """Return whether a page of ``origin`` came from the server that it asked for as ``host``."""
    address = _split(origin)
    return address is not None and address.netloc.lower() == host.lower()


def _basic(header: str) -> bytes:
    """``user:password`` of an Authorization header; empty if it has none."""
    kind, _, text = header.partition(" ")
    if kind.lower() != "basic":
        return b""
    try:
        return base64.b64decode(text.strip(), validate=True)
    except ValueError:
        return b""
