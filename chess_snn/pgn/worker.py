"""A process of an import: ``python -m chess_snn.pgn.worker FD``, where FD is a socket."""

import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from chess_snn.data import write_shard
from chess_snn.pgn.folder import ImportFolder, shard_meta
from chess_snn.pgn.pool import serve
from chess_snn.pgn.reading import read_games
from chess_snn.pgn.source import Chunk
from chess_snn.types import Json

_WARM_UP: Final = b"1. e4 e5 2. Nf3 1-0\n"


def import_chunk(folder: ImportFolder, chunk: Chunk, strict: bool) -> Json:
    """Commit the good games of ``chunk`` as its shard; what became of them, as JSON.

    With ``strict``, nothing is committed where a game is bad.
    """
    records, report = read_games(chunk.text, chunk.first_game)
    if records is not None and not (strict and report.games_refused):
        meta = shard_meta(folder.source, chunk.first_game, chunk.sha256, report)
        write_shard(folder.shard(chunk.index), records, meta)
    return report.to_json()


def warm_up() -> None:
    """Load the kernels, or compile them where nobody did before."""
    read_games(_WARM_UP)


def main() -> None:
    """Import the chunks that come through the socket."""
    # Ctrl-C reaches every process of the terminal; the importing one says what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warm_up()

    def work(task: Json, content: bytes) -> Json:
        folder = ImportFolder.open(Path(task["folder"]))
        chunk = Chunk(task["index"], task["first_game"], content)
        return {"index": chunk.index, "report": import_chunk(folder, chunk, task["strict"])}

    serve(Connection(int(sys.argv[1])), work)


if __name__ == "__main__":
    main()
