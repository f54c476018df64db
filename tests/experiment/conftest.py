"""A finished experiment."""

from pathlib import Path

import pytest
from made_experiments import begin, run, train_here

from chess_snn.experiment import judging


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A folder with a finished experiment; a test that changes it copies it first."""
    root = begin(tmp_path_factory.mktemp("experiment"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "run_on", train_here)
        assert run(root, "run", "small.toml") == 0
    return root
