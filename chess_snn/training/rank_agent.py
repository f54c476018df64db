"""torch's elastic agent as a child of ours: ``python -m ...rank_agent FOLDER ARGS...``.

It is ``torchrun ARGS...``, but what went wrong is written to a file in FOLDER, for
:func:`chess_snn.training.rank_launch.run_ranks` to read. FOLDER is that function's scratch: where
its process was killed, the agent, which ends with it, removes it.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous import RendezvousError
from torch.distributed.run import main as torchrun

from chess_snn.data import write_json
from chess_snn.processes import describe_exit
from chess_snn.training.ranks import AGENT_PID
from chess_snn.types import Json

FAILURE: Final = "failure.json"
"""In the folder: what went wrong."""

FAILED: Final = 1
_DIED: Final = "RankLostError"


def main(arguments: list[str]) -> int:
    """Launch ranks and wait for them; the exit code."""
    folder, *rest = arguments
    parent = os.getppid()
    try:
        return _launch(Path(folder), rest)
    finally:
        if os.getppid() != parent:
            shutil.rmtree(folder, ignore_errors=True)


def _launch(folder: Path, arguments: list[str]) -> int:
    os.environ[AGENT_PID] = str(os.getpid())
    try:
        torchrun(arguments)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        write_json(folder / FAILURE, _describe(rank, failure))
    except RendezvousError as error:
        write_json(folder / FAILURE, {
            "kind": _DIED,
            "message": f"the launchers of all nodes did not meet: {error or type(error).__name__}; "
                       "start one on each node, and see that --rdzv-endpoint can be reached",
        })
    except SignalException as error:
        return 128 + int(error.sigval)
    else:
        return 0
    return FAILED


def _describe(rank: int, failure: ProcessFailure) -> Json:
    """What the first rank that failed said, or how it died."""
    if failure.exitcode < 0:
        how = describe_exit(failure.exitcode)
        return {"kind": _DIED, "message": f"rank {rank} (process {failure.pid}) {how}"}
    told: object = failure.message  # of the agent's making, or what a rank has told
    text = str(told["message"]) if isinstance(told, dict) else str(told)
    kind, _, message = text.partition(": ")
    return {"kind": kind, "message": f"{message} (rank {rank})" if message else text}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
