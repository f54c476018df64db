"""Which matches a tournament plays, and what it and an import refuse before they begin."""

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("distributed")

from small_campaigns import commit, finish, make_campaign  # noqa: E402

from chess_snn.errors import ConfigError  # noqa: E402
from flows.importing import import_games  # noqa: E402
from flows.tournament import plan_matches, tournament  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    """A campaign of three generations."""
    made = make_campaign(tmp_path / "campaign")
    commit(made.checkpoint(0))
    for iteration in range(2):
        finish(made, iteration)
    return made


def names(matches):
    return [match.name for match in matches]


def test_every_two_generations_meet_and_each_meets_every_opponent(folder):
    matches = plan_matches(folder, [2, 0, 1, 0], ["random", "greedy", "random"], 8, 10)
    assert names(matches) == [
        "gen-000001@8-gen-000000@8", "gen-000002@8-gen-000000@8", "gen-000002@8-gen-000001@8",
        *(f"gen-{generation:06d}@8-{opponent}"
          for generation in range(3) for opponent in ("random", "greedy")),
    ]
    assert {match.num_games for match in matches} == {20}
    assert len({folder.match(match.event, match.name) for match in matches}) == len(matches)


def test_left_out_the_newest_plays_alone(folder):
    assert names(plan_matches(folder, None, ["random"], 0, 1)) == ["gen-000002-random"]


def test_rounds_of_different_length_do_not_take_each_others_results(folder):
    short, long = (plan_matches(folder, None, ["random"], 8, openings) for openings in (5, 50))
    assert short[0].event != long[0].event


@pytest.mark.parametrize(("generations", "opponents", "reason"), [
    ([7], ["random"], "has no generation 7; its newest is 2"),
    ([1], [], "needs two generations"),
    ([1], ["nobody"], "unknown player 'nobody'"),
    ([1], ["minimax:99"], "minimax"),
])
def test_what_cannot_be_played_is_refused(folder, generations, opponents, reason):
    with pytest.raises(ConfigError, match=reason):
        plan_matches(folder, generations, opponents, 8, 1)


def test_a_round_longer_than_the_book_is_refused_before_it_begins(folder):
    with pytest.raises(ConfigError, match="1001"):
        plan_matches(folder, [1], ["random"], 8, 1001)


def test_relative_paths_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="directory .*'c'"):
        tournament.fn("c")
    with pytest.raises(ConfigError, match="out .*'imported'"):
        import_games.fn(str(tmp_path / "a.pgn"), "imported")
