"""How soon commands answer, as multiples of ``python -c pass`` in the same run.

With that at 0.02 s, as on a quiet machine, the bars are 0.3 s for help, 0.5 s for ``uciok``, 1 s
for a command that asks no network, and 2 s and torch for one that does.
"""

import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.harness import FULL, QUICK, Quick, Report, Work, benchmark, rates_in_turn
from benchmarks.many_shards import SHARDS_EACH, make_campaign

_HELP_BAR, _UCI_BAR, _READ_BAR, _NETWORK_BAR = 15.0, 25.0, 50.0, 100.0
_BARS: Final = {
    "--help": _HELP_BAR, "play --help": _HELP_BAR, "uci --help": _HELP_BAR,
    "campaign start --help": _HELP_BAR, "games learn --help": _HELP_BAR, "uci": _UCI_BAR,
    "campaign status FOLDER": _READ_BAR, "watch FOLDER --once": _READ_BAR,
    "models list FOLDER": _READ_BAR, "games show FOLDER": _READ_BAR, "doctor": _READ_BAR,
    "analyse startpos": _NETWORK_BAR,
}
_TORCH: Final = "import torch"


def run(report: Report, quick: Quick = False) -> None:
    """How soon commands answer, beside Python alone and the import of torch.

    python -m benchmarks startup --json
    """
    with tempfile.TemporaryDirectory(prefix="chess-snn-bench-") as scratch:
        folder = make_campaign(Path(scratch), SHARDS_EACH, lambda done, total: None)
        works = {code: _process("-c", code) for code in ("pass", _TORCH)} | {
            name: _process("-m", "chess_snn", *name.replace("FOLDER", str(folder.path)).split())
            for name in _BARS
        }
        rates = rates_in_turn(works, QUICK if quick else FULL)
    torch = rates["pass"] / rates[_TORCH]
    report.add(_TORCH, torch, "x")
    for name, bar in _BARS.items():
        ratio = rates["pass"] / rates[name]
        report.add(name, ratio, "x", at_most=bar + torch * (bar == _NETWORK_BAR))
    report.note(f"1 is {1000 / rates['pass']:.0f} ms, of `python -c pass`")


def _process(*arguments: str) -> Work:
    return Work(partial(
        subprocess.run, [sys.executable, *arguments], input=b"uci\nquit\n", check=True,
        capture_output=True,
    ))


command = benchmark("startup", run)
