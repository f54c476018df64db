import sys
from pathlib import Path

# Folder of tiny_2048.py.
sys.path.append(str(Path(__file__).parents[1] / "games"))
