"""The ASGI application of a Prefect server: Prefect's own behind the guard of our web pages.

Prefect demands the credentials (``PREFECT_SERVER_API_AUTH_STRING``) but answers any ``Host``, and
so pages of other sites by DNS rebinding, and reads bodies of any origin.
"""

from typing import Final

from prefect.server.api import server
from prefect.settings import PREFECT_SERVER_API_HOST
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from chess_snn.flows.prefect_access import SIGN_IN
from chess_snn.web.guard import Guard, own_names

_HEADERS: Final = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer. Scripts are not restricted, for Prefect's pages have inline ones."""

_SIGN_IN_PAGE: Final = """<!doctype html><meta charset="utf-8"><title>Prefect</title><script>
const credentials = decodeURIComponent(location.hash.slice(1));
if (credentials) localStorage.setItem("prefect-password", btoa(credentials));
location.replace("/");
</script>"""
"""Does what the form of Prefect's page does with a password that is typed into it."""


def create_app() -> ASGIApp:
    """The application that uvicorn serves under the name ``PREFECT_SERVER_API_HOST``."""
    prefect = server.create_app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == SIGN_IN:
            await HTMLResponse(_SIGN_IN_PAGE)(scope, receive, send)
        else:
            await prefect(scope, receive, send)

    return Guard(app, own_names(PREFECT_SERVER_API_HOST.value()), headers=_HEADERS)
