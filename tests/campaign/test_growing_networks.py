"""A campaign whose network grows: sizes, versions, and the same weights after a loss."""

import shutil

import pytest
from small_campaigns import play_campaign

from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.integrity.verify import verify_campaign
from chess_snn.campaign.models.starting import create_campaign, find_start
from chess_snn.campaign.models.versions import version_of
from chess_snn.campaign.stages import train_generation
from chess_snn.data import read_manifest
from chess_snn.errors import UsageError
from chess_snn.nets import network_digest
from chess_snn.training import load_weights

pytestmark = pytest.mark.slow
GROWTH = 'net.growth=["2x6@0.5"]'


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> CampaignFolder:
    """Two iterations; the second one trains a larger network."""
    return play_campaign(tmp_path_factory.mktemp("grown") / "c", GROWTH)


def sizes(folder):
    return [load_weights(folder.checkpoint(k)).config.size for k in range(3)]


def test_the_network_is_larger_from_its_share_on(grown):
    assert sizes(grown) == ["1x4", "1x4", "2x6"]
    assert [version_of(grown, k).size for k in range(3)] == ["1x4", "1x4", "2x6"]
    assert not any(found.is_damage for found in verify_campaign(grown).found)


def test_a_lost_generation_is_trained_again_to_the_same_bits(grown, tmp_path):
    shutil.copytree(grown.path, tmp_path / "c")
    folder = CampaignFolder.open(tmp_path / "c")
    shutil.rmtree(folder.checkpoint(2))
    train_generation(folder.path, 1)
    digests = [read_manifest(each.checkpoint(2)).meta["weights_digest"] for each in (grown, folder)]
    assert digests[0] == digests[1]


def test_before_it_grows_it_learns_as_one_that_does_not(grown, played_campaign):
    assert network_digest(load_weights(played_campaign.checkpoint(1))) == network_digest(
        load_weights(grown.checkpoint(1))
    )


def test_a_campaign_may_start_larger_than_the_network_it_starts_from(grown, tmp_path):
    start = find_start(f"{grown.path}@1")
    config = start.load_config("smoke", settings=["net.size=3x8"])
    folder = create_campaign(tmp_path / "larger", config, start)
    assert load_weights(folder.checkpoint(0)).config.size == "3x8"
    with pytest.raises(UsageError, match=r"net\.size"):
        find_start(f"{grown.path}@2").load_config("smoke", settings=["net.size=1x8"])
