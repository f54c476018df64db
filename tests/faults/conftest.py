"""Campaigns that nobody touched, to compare those with that were killed."""

from pathlib import Path

import pytest
from campaign_driver import SMALL_OPTIONS, finish, launch


@pytest.fixture(scope="session")
def undisturbed_small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished campaign with the settings GROWING."""
    base = tmp_path_factory.mktemp("undisturbed-small")
    process = launch("start", "--dir", str(base / "c"), *SMALL_OPTIONS, log=base / "log")
    finish(process, base / "log")
    return base / "c"
