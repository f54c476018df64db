"""Two campaigns side by side: where they are compared, and what is said of them."""

import json
import shutil
from xml.etree import ElementTree

import pytest
from stored_files import copy_campaign
from typer.testing import CliRunner

from chess_snn.campaign.strength.measured_points import Milestone, common_points
from chess_snn.cli.campaign import app
from chess_snn.errors import CampaignError


def curve(seconds: float, games: int, length: int, *removed: int) -> list[Milestone]:
    return [
        Milestone(k, k, games * k, seconds * k, None, k not in removed)
        for k in range(1, length + 1)
    ]


def test_the_slower_campaign_has_fewer_generations_at_equal_time():
    points = common_points(curve(10.0, 100, 8), curve(20.0, 50, 6))
    assert {p.measure: (p.value, p.a.generation, p.b.generation) for p in points} == {
        "iterations": (6.0, 6, 6), "games": (300.0, 3, 6), "seconds": (80.0, 8, 4),
    }


def test_several_points_are_spread_over_what_both_have():
    points = common_points(curve(1.0, 1, 8), curve(1.0, 1, 4, 4), num_points=2)
    found = [(p.value, p.a.generation, p.b.generation) for p in points if p.measure == "games"]
    assert found == [(2.0, 2, 2), (4.0, 4, 3)]


def test_without_networks_nothing_is_compared():
    with pytest.raises(CampaignError, match="no networks to compare"):
        common_points(curve(1.0, 1, 2, 1, 2), curve(1.0, 1, 2))


def test_a_campaign_and_its_copy_are_even(tmp_path):
    campaign = copy_campaign(tmp_path)
    shutil.copytree(campaign.path, tmp_path / "copy")
    done = CliRunner().invoke(app, [
        "compare", str(campaign.path), str(tmp_path / "copy"), "--games", "2", "--simulations",
        "0", "--max-plies", "4", "--json", "--plot", str(tmp_path / "curves.svg"),
    ])
    assert done.exit_code == 0, done.output
    body = json.loads(done.stdout[done.stdout.index("{"):])
    assert [row["measure"] for row in body["points"]] == ["iterations", "games", "seconds"]
    for row in body["points"]:
        assert row["generation_a"] == row["generation_b"] == 2
        assert row["games"] == 2
        assert row["likelihood_of_superiority"] == pytest.approx(0.5)
    svg = ElementTree.parse(tmp_path / "curves.svg")
    assert len(svg.findall(".//{http://www.w3.org/2000/svg}polyline")) == 6
