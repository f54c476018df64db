"""A real S3 server on loopback, and a gate before it that can be closed."""

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

pytest.importorskip("obstore", reason="needs chess-snn[s3]: nothing of the object store is tested")
pytest.importorskip("moto", reason="needs moto[s3,server]: nothing of the object store is tested")

import boto3
from moto.server import ThreadedMotoServer

LOOPBACK = "127.0.0.1"
REGION = "us-east-1"
BUCKET = "games"
URL = f"s3://{BUCKET}/first/campaign"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "canary-5e1f", "AWS_REGION": REGION,
}
CUT_S = 0.1


@dataclass
class S3Server:
    """Where the server is, by its own port and through the gate."""

    endpoint: str
    gate: "Gate"

    def client(self):
        """Of another library, to look at what is there and to damage it."""
        return boto3.client(
            "s3", endpoint_url=self.endpoint, region_name=REGION,
            aws_access_key_id="test", aws_secret_access_key="test",
        )

    def object_keys(self, bucket: str = BUCKET) -> list[str]:
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


@dataclass
class Gate:
    """Passes bytes between a port and the server while it is open."""

    server_port: int
    refuses_puts: bool = False
    """Whether a PUT is answered as by a store of which one may only read."""
    num_connections: int = 0
    _listener: socket.socket = field(default_factory=socket.socket)
    _alive: list[socket.socket] = field(default_factory=list)
    _port: int = 0

    @property
    def endpoint(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    def open(self) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((LOOPBACK, self._port))
        self._listener.listen(64)
        self._port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def close(self) -> None:
        """Nobody answers from now on, and nobody is being answered."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in self._alive:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._alive.clear()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                outside, _ = listener.accept()
            except OSError:
                return
            self.num_connections += 1
            inside = socket.create_connection((LOOPBACK, self.server_port))
            self._alive += [outside, inside]
            threading.Thread(target=self._pass, args=(outside, inside, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(inside, outside, False), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while block := source.recv(1 << 16):
                if is_request and self.refuses_puts and block.startswith((b"PUT ", b"POST ")):
                    source.sendall(_FORBIDDEN)
                    break
                target.sendall(block)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


_BODY = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code>'
    b"<Message>Access Denied.</Message></Error>"
)
_FORBIDDEN = (
    b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/xml\r\nConnection: close\r\n"
    b"Content-Length: " + str(len(_BODY)).encode() + b"\r\n\r\n" + _BODY
)


@contextlib.contextmanager
def running_server() -> Iterator[S3Server]:
    """A server with an empty bucket, for the length of the block."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address=LOOPBACK, port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    gate = Gate(port)
    gate.open()
    try:
        found = S3Server(f"http://{LOOPBACK}:{port}", gate)
        found.client().create_bucket(Bucket=BUCKET)
        yield found
    finally:
        gate.close()
        server.stop()
