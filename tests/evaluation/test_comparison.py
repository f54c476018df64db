"""What a match says of two players is what its pairs say, now and at every earlier point."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from chess_snn.cli.plots import comparison_svg
from chess_snn.evaluation import MatchResult, compare, likelihood_of_superiority
from chess_snn.games import get_game

SPEC = get_game("chess").spec


def match_of(points: list[float], name_a: str = "a", void: int = 0) -> MatchResult:
    """Player a makes so many points with each opening; the last ``void`` openings do not count."""
    halves = np.array([(min(1.0, each), max(0.0, each - 1.0)) for each in points])
    halves[len(halves) - void :, 1] = np.nan
    count = len(points)
    keys = tuple(f"book:{number:04d}" for number in range(count))
    return MatchResult(
        spec=SPEC, player_a=name_a, player_b="b", opening_keys=keys, opening_positions=keys,
        opening_index=np.repeat(np.arange(count, dtype=np.int32), 2),
        a_is_white=np.tile([True, False], count), scores_a=halves.ravel().astype(np.float32),
        terminations=np.ones(2 * count, np.uint8), plies=np.ones(2 * count, np.int32),
        actions=np.zeros(2 * count, np.int16),
    )


def test_the_better_player_is_named_with_its_probability():
    comparison = compare(match_of([2.0, 1.0, 2.0, 1.5, 1.0, 2.0]))
    assert comparison.counts.tolist() == [0, 0, 2, 1, 3]
    assert comparison.better == "a"
    assert comparison.probability == comparison.superiority > 0.9
    worse = compare(match_of([0.0, 1.0, 0.0, 0.5, 1.0, 0.0]))
    assert worse.better == "b"
    assert worse.probability == pytest.approx(comparison.probability)
    json.dumps(worse.to_json(), allow_nan=False)


def test_even_games_name_nobody():
    comparison = compare(match_of([2.0, 0.0, 1.0]))
    assert comparison.probability == pytest.approx(0.5, abs=1e-9)
    assert comparison.better == ""


@pytest.mark.parametrize("num_openings", [1, 2, 59, 60, 150])
def test_the_curve_is_what_shorter_matches_would_have_said(num_openings):
    points = np.random.default_rng(num_openings).choice([0.0, 0.5, 1.0, 1.5, 2.0], num_openings)
    comparison = compare(match_of(points.tolist()))
    assert comparison.pairs[-1] == num_openings
    assert len(comparison.pairs) <= 60
    middle = len(comparison.pairs) // 2
    shorter = compare(match_of(points[: comparison.pairs[middle]].tolist()))
    assert comparison.superiority_by_pairs[middle] == pytest.approx(shorter.superiority)
    assert comparison.superiority_by_pairs[-1] == comparison.superiority
    assert comparison.superiority == likelihood_of_superiority(comparison.counts)


def test_pairs_with_a_void_game_say_nothing():
    comparison = compare(match_of([2.0, 0.0, 0.0], void=2))
    assert comparison.counts.tolist() == [0, 0, 0, 0, 1]
    assert comparison.pairs.tolist() == [1]
    nothing = compare(match_of([2.0], void=1))
    assert (nothing.superiority, len(nothing.pairs)) == (pytest.approx(0.5), 0)


@pytest.mark.parametrize("points", [[2.0, 1.0, 0.5] * 30, [1.0], [0.0] * 4])
def test_the_picture_is_an_svg_with_its_figures(points):
    comparison = compare(match_of(points, name_a="runs/a@12 <&>"))
    root = ElementTree.fromstring(comparison_svg(comparison))
    texts = [element.text for element in root.iter() if element.tag.endswith("text")]
    assert "runs/a@12 <&> against b" in texts
    assert f"{len(points)} pairs" in texts
    assert any(f"{comparison.superiority:.1%}" in text for text in texts)
    bars = [element for element in root.iter() if element.tag.endswith("rect")][1:]
    heights = np.array([float(bar.get("height")) for bar in bars])
    assert (heights / heights.max()).tolist() == pytest.approx(
        (comparison.counts / comparison.counts.max()).tolist(), abs=1e-3
    )
