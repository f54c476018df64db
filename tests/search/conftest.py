import sys
from pathlib import Path

# Of tests/games: tiny_2048.py.
sys.path.append(str(Path(__file__).parents[1] / "games"))
