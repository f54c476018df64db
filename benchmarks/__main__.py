"""``python -m benchmarks NAME …`` is ``chess-snn bench NAME …``."""

import sys

from chess_snn.cli import main

sys.argv.insert(1, "bench")
main()
