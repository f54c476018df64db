"""``chess-snn games`` with recorded games of 2048."""

import json

import numpy as np
import pytest
from made_tiles import GAME, make_tiles_campaign, played_games


@pytest.fixture(scope="module")
def played():
    return played_games(3)


@pytest.fixture
def campaign(tmp_path, played):
    return make_tiles_campaign(tmp_path / "c", played[0])


def test_stats_are_those_of_the_games(chess_snn, campaign, played):
    records, points, ends = played
    body = json.loads(chess_snn("games", "stats", "c", "--json").stdout)
    assert body["points"] == {
        "mean": np.mean(points), "median": np.median(points), "max": max(points),
    }
    tiles = GAME.milestones(ends).tolist()
    assert body["milestones"] == {str(tile): tiles.count(tile) for tile in sorted(set(tiles))}
    assert body["endings"] == {"no_moves": 3}
    assert body["plies"]["mean"] == np.diff(records.game_offsets).mean()
    assert "results" not in body
    table = chess_snn("games", "stats", "c").stdout
    assert f"median {np.median(points):,.0f}" in table
    assert f"largest tile: {max(tiles)}" in table


@pytest.mark.parametrize("number", [1, 3])
def test_show_gives_moves_score_and_the_board(chess_snn, campaign, played, number):
    records, points, _ = played
    first, end = records.game_offsets[number - 1 : number + 1]
    done = chess_snn("games", "show", "c", "--game", number, "--ply", 5)
    assert done.returncode == 0, done.stderr
    assert f"{points[number - 1]:,.0f}" in done.stdout
    moves = [GAME.format_action(records.states[i], records.actions[i]) for i in range(first, end)]
    shown = [word for word in done.stdout.split() if word in {"left", "up", "right", "down"}]
    assert shown == moves
    assert f"After 5 of {end - first:,} moves" in done.stdout
    assert done.stdout.endswith(GAME.format_state(records.states[first + 5]) + "\n")


def test_the_last_board_lacks_the_last_tile(chess_snn, campaign, played):
    _, _, ends = played
    text = chess_snn("games", "show", "c/games/iter-000000/shard-0000").stdout.splitlines()[-1]
    last = GAME.parse_state(text)
    assert text.endswith("+")
    batch = GAME.allocate(1)
    GAME.reset(batch, np.zeros(1, np.int64), last[None])
    reached = []
    for event in batch.legal_actions[0, : batch.num_legal[0]]:
        after = batch.take(np.zeros(1, np.int64))
        GAME.step(after, np.array([event]))
        reached.append(after.state[0].tolist())
    assert ends[0].tolist() in reached
