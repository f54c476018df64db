"""Every fault of docs/reliability.md has tests."""

import re
from pathlib import Path

from fault_table import faults

TESTS = Path(__file__).parents[1]


def test_every_fault_has_a_test():
    marked = set()
    for file in TESTS.rglob("test_*.py"):
        for rows in re.findall(r"mark\.fault\(([\d, ]+)\)", file.read_text()):
            marked |= {int(row) for row in rows.split(",")}
    assert marked == faults().keys() == set(range(1, 27))
