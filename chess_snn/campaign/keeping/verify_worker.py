"""A process of `chess-snn verify`, started with the number of a socket that it inherits."""

import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path

from chess_snn.data.audit import ShardAudit, audit_shards
from chess_snn.games import get_game
from chess_snn.pgn.pool import serve
from chess_snn.types import Json


def audit_task(first: int, game: str, folders: Sequence[Path]) -> Json:
    """The task of auditing ``folders``, the first of which is number ``first``."""
    return {"first": first, "game": game, "folders": [str(folder) for folder in folders]}


def read_answer(body: Json) -> list[tuple[int, ShardAudit]]:
    """The audits of a task, each with the number of its folder."""
    return list(enumerate((ShardAudit(**audit) for audit in body["audits"]), body["first"]))


def answer(task: Json, content: bytes) -> Json:
    """The audits that a task asks for, as JSON; there is nothing beside a task."""
    del content
    audits = audit_shards(get_game(task["game"]), [Path(folder) for folder in task["folders"]])
    return {"first": task["first"], "audits": [asdict(audit) for audit in audits]}


def main() -> None:
    """Audit what comes through the socket."""
    # Ctrl-C reaches every process of the terminal; the verifying one says what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(Connection(int(sys.argv[1])), answer)


if __name__ == "__main__":
    main()
