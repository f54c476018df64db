"""A browser that speaks the page's protocol, without a page."""

import itertools
import json
import struct

ADDRESS = "http://127.0.0.1:8642"
SOCKET = "ws://127.0.0.1:8642/ws"
SHIPPED = {"chess": "shipped/chess", "2048": "shipped/2048"}


class Browser:
    """One connection, which numbers its requests."""

    def __init__(self, socket) -> None:
        self.socket = socket
        self._numbers = itertools.count(1)
        self.spikes: list[tuple[dict, bytes]] = []
        """Header and payload of all frames of spikes so far."""

    def send(self, kind: str, **fields) -> int:
        number = next(self._numbers)
        self.socket.send_text(json.dumps({"type": kind, "id": number, **fields}))
        return number

    def receive(self) -> dict:
        """The next message that is no frame of spikes."""
        while True:
            message = self.socket.receive()
            if (frame := message.get("bytes")) is None:
                assert message["type"] == "websocket.send", message
                return json.loads(message["text"])
            self.spikes.append(read_frame(frame))

    def answer(self) -> dict:
        """The next message that is neither spikes nor progress of a search."""
        while (message := self.receive())["type"] == "info":
            pass
        return message

    def ask(self, kind: str, **fields) -> dict:
        """Send a request, and return its answer, the last of a search."""
        number = self.send(kind, **fields)
        while (answer := self.answer())["id"] != number:
            pass
        return answer

    def search(self, moves=(), **fields) -> dict:
        return self.ask("search", **{
            "game": chess_game(*moves), "model": SHIPPED["chess"], "simulations": 8, **fields
        })


def read_frame(frame: bytes) -> tuple[dict, bytes]:
    (length,) = struct.unpack_from("<I", frame)
    return json.loads(frame[4 : 4 + length]), frame[4 + length :]


def chess_game(*moves: str, start: str | None = None) -> dict:
    return {"kind": "chess", "start": start, "moves": list(moves)}


def tiles_game(*moves: str, **fields) -> dict:
    return {"kind": "2048", "seed": 7, "moves": list(moves), **fields}
