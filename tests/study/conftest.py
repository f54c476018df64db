"""A finished study."""

from pathlib import Path

import pytest
from made_studies import SMALL, begin, run


@pytest.fixture(scope="module")
def studied(tmp_path_factory) -> Path:
    """A folder with a finished study; a test that changes it copies it first."""
    root = begin(tmp_path_factory.mktemp("study"))
    assert run(root, *SMALL) == 0
    return root
