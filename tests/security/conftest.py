"""What these tests share with those of faults: campaigns in processes of their own."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "faults"))
