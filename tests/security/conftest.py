"""Fixtures shared with other tests: campaigns and services in processes of their own."""

import sys
from pathlib import Path

for folder in ("faults", "orchestration", "web"):
    sys.path.append(str(Path(__file__).parents[1] / folder))
