"""``python -m chess_snn`` is ``chess-snn``."""

from chess_snn.cli import main

if __name__ == "__main__":
    main()
