"""A page's server in this process, and connections to it."""

import contextlib

import pytest

pytest.importorskip("starlette", reason="pip install 'chess-snn[web]': the page is NOT tested")
pytest.importorskip("httpx", reason="pip install httpx: the page is NOT tested")

import torch
from page_browser import ADDRESS, SOCKET, Browser
from starlette.testclient import TestClient

from chess_snn.campaign.models.references import find_model
from chess_snn.web.networks import Networks
from chess_snn.web.server import WebSettings, make_app


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def make_client():
    """Makes clients of a server with these networks; all are closed at the end."""
    with contextlib.ExitStack() as stack:

        def make(*named, campaign=None, versions=None, **settings) -> TestClient:
            folder = None if campaign is None else campaign.folder
            networks = Networks(find_model, named, folder, versions)
            app = make_app(networks, campaign, WebSettings(**settings))
            return stack.enter_context(TestClient(app, ADDRESS, headers={"Origin": ADDRESS}))

        yield make


@pytest.fixture
def client(make_client):
    return make_client()


@pytest.fixture
def browser(client):
    with client.websocket_connect(SOCKET) as socket:
        yield Browser(socket)
