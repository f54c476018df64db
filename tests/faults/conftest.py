"""Campaigns that nobody touched, to compare those with that were killed."""

from pathlib import Path

import pytest
from campaign_driver import SMALL, finish, launch


@pytest.fixture(scope="session")
def undisturbed_small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign with the settings SMALL."""
    base = tmp_path_factory.mktemp("undisturbed-small")
    finish(launch("start", "--dir", str(base / "c"), *SMALL, log=base / "log"), base / "log")
    return base / "c"
