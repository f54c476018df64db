"""A browser that fetches nothing: progress is dropped, and no answer is lost in silence."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from starlette.websockets import WebSocket

from chess_snn.campaign.models.references import find_model
from chess_snn.web.networks import Networks
from chess_snn.web.searching import Place, Searcher
from chess_snn.web.session import Session

ROOM = 64
END_S = 20.0


class SlowBrowser:
    """The other end of a socket, which takes what is sent once it ``fetches``."""

    def __init__(self) -> None:
        self.fetches = asyncio.Event()
        self.got: list[dict] = []
        self._opens = [{"type": "websocket.connect"}]

    async def receive(self) -> dict:
        if self._opens:
            return self._opens.pop()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: dict) -> None:
        if message["type"] == "websocket.send":
            await self.fetches.wait()
        self.got.append(message)

    @property
    def texts(self) -> list[str]:
        return [message["text"] for message in self.got if message["type"] == "websocket.send"]


async def begin(browser: SlowBrowser, threads: ThreadPoolExecutor):
    """A session whose sender waits for the browser with its first answer."""
    socket = WebSocket({"type": "websocket"}, browser.receive, browser.send)
    await socket.accept()
    session = Session(socket, Searcher(Networks(find_model, (), None), Place()), threads)
    running = asyncio.create_task(session.run())
    session._offer({"type": "result", "id": 0})
    await asyncio.sleep(0.05)
    return session, running


def offered(kind: str, numbers: range) -> list[dict]:
    return [{"type": kind, "id": number} for number in numbers]


def test_progress_leaves_half_of_the_queue_to_results():
    async def converse() -> list[str]:
        browser = SlowBrowser()
        with ThreadPoolExecutor(1) as threads:
            session, running = await begin(browser, threads)
            for message in (*offered("info", range(ROOM)), *offered("result", range(ROOM // 4))):
                session._offer(message)
            session._offer(b"spikes")
            browser.fetches.set()
            await asyncio.sleep(0.1)
            assert not running.done()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        return browser.texts

    texts = asyncio.run(converse())
    assert sum('"info"' in text for text in texts) == ROOM // 2
    assert sum('"result"' in text for text in texts) == 1 + ROOM // 4


def test_a_result_without_room_ends_the_connection():
    async def converse() -> SlowBrowser:
        browser = SlowBrowser()
        with ThreadPoolExecutor(1) as threads:
            session, running = await begin(browser, threads)
            for message in offered("result", range(ROOM)):
                session._offer(message)
            await asyncio.sleep(0.05)
            assert not running.done()
            session._offer({"type": "error", "id": ROOM})
            await asyncio.wait_for(running, END_S)
        return browser

    browser = asyncio.run(converse())
    assert browser.texts == []
    assert [message.get("code") for message in browser.got[1:]] == [1013]
