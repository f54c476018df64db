"""A finished experiment."""

from pathlib import Path

import pytest
from made_experiments import finish


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder with a finished experiment; a test that changes it copies it first."""
    return finish(tmp_path_factory.mktemp("experiment"))
