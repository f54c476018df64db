"""One seed, one configuration, one kind of device: the same games and weights to the bit."""

from pathlib import Path

import pytest
from campaign_driver import SMALL_OPTIONS, finish, launch, settings
from small_campaigns import assert_same_campaign

from chess_snn.campaign import CampaignFolder
from chess_snn.data import read_manifest, read_shard

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(7200)]


@pytest.mark.parametrize("how", [
    settings(execution__workers=1),
    settings(execution__workers=3, execution__overlap="false"),
], ids=["one worker", "three workers, one iteration after the other"])
def test_neither_workers_nor_their_order_change_a_campaign(
    tmp_path: Path, undisturbed_small: Path, how: list[str]
) -> None:
    path, log = tmp_path / "c", tmp_path / "log"
    finish(launch("start", "--dir", str(path), *SMALL_OPTIONS, *how, log=log), log)
    assert_same_campaign(path, undisturbed_small)


def test_another_seed_is_another_campaign(tmp_path: Path, undisturbed_small: Path) -> None:
    """Else the comparisons above would compare nothing."""
    path, log = tmp_path / "c", tmp_path / "log"
    other = settings(campaign__seed=12, campaign__iterations=1)
    finish(launch("start", "--dir", str(path), *SMALL_OPTIONS, *other, log=log), log)
    folders = [CampaignFolder.open(each) for each in (path, undisturbed_small)]
    digests = [
        read_manifest(each.checkpoint(generation)).meta["weights_digest"]
        for each in folders for generation in (0, 1)
    ]
    assert len(set(digests)) == len(digests)
    one, another = (read_shard(each.shard(0, 0))[0].actions.tolist() for each in folders)
    assert one != another
