"""``chess-snn games``: what goes in comes out, and what is said of it is so."""

import io
import json
from dataclasses import replace

import chess.pgn
import numpy as np
import pytest
from made_tiles import GAME, make_tiles_campaign, played_games

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.data import write_shard
from chess_snn.evaluation.match_files import write_match
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import book_openings
from chess_snn.evaluation.players import GreedyPlayer, RandomPlayer
from chess_snn.games import get_game
from chess_snn.pgn.reading import read_games

MATE = '[Event "mate"]\n[Result "0-1"]\n\n1. f3 e5 2. g4 Qh4# 0-1\n\n'
RESIGNED = '[Event "resigned"]\n[Result "1-0"]\n\n1. e4 f5 2. exf5 Kf7 3. Qh5+ 1-0\n\n'
AGREED = '[Event "agreed"]\n[Result "1/2-1/2"]\n\n1. d4 d5 1/2-1/2\n\n'
ENDING = ('[Event "ending"]\n[SetUp "1"]\n[FEN "7k/5Q2/8/8/8/8/8/K7 w - - 0 1"]\n'
          '[Result "1/2-1/2"]\n\n1. Qg6 1/2-1/2\n\n')
ILLEGAL = '[Event "bad"]\n[Result "1-0"]\n\n1. e4 e5 2. Ke3 1-0\n\n'
STAR = '[Event "star"]\n[Result "*"]\n\n1. e4 *\n\n'


@pytest.fixture
def pgn_file(tmp_path):
    path = tmp_path / "some.pgn"
    path.write_text(MATE + ILLEGAL + RESIGNED + AGREED + STAR + ENDING)
    return path


@pytest.fixture
def imported(chess_snn, pgn_file, tmp_path, threads_for_processes):
    done = chess_snn("games", "import", pgn_file, "--out", "games", "--workers", 1)
    assert done.returncode == 0, done.stderr
    return tmp_path / "games"


@pytest.fixture
def campaign(tmp_path):
    """Two iterations of two shards, each with the same four games; one of them cut."""
    folder = CampaignFolder.create(tmp_path / "c", load_config("smoke"))
    records, _ = read_games((MATE + RESIGNED + AGREED + ENDING).encode())
    cut_values = np.array([0, 0, 0.25, 0], np.float32)
    records = replace(records, cut_values_white=cut_values)
    for iteration in range(2):
        for shard in range(2):
            write_shard(folder.shard(iteration, shard), records, {
                "game": "chess", "iteration": iteration, "shard": shard, "generation": iteration,
            })
    return folder


def games_in(text):
    stream = io.StringIO(text)
    return list(iter(lambda: chess.pgn.read_game(stream), None))


def test_an_import_says_what_came_in_and_what_did_not(chess_snn, pgn_file, tmp_path):
    done = chess_snn("games", "import", pgn_file, "--out", "games", "--json-file", "r/import.json",
                     "--workers", 1)
    assert done.returncode == 0, done.stderr
    body = json.loads((tmp_path / "r" / "import.json").read_text())
    assert (body["games_read"], body["games"], body["positions"]) == (6, 4, 12)
    assert body["refused"]["illegal_move"] == {
        "games": 1, "first": {"kind": "illegal_move", "game": 2, "ply": 2, "token": "Ke3"},
    }
    again = chess_snn("games", "import", pgn_file, "--out", "games", "--workers", 1)
    assert again.returncode == 0


def test_an_import_exports_to_the_same_games(chess_snn, imported):
    done = chess_snn("games", "export", imported)
    assert done.returncode == 0
    mate, resigned, agreed, ending = games_in(done.stdout)
    assert mate.headers["Event"] == "some.pgn"
    assert [game.headers["EndedBy"] for game in (mate, resigned, agreed, ending)] == [
        "checkmate", "resigned", "agreed", "stalemate"]
    assert [game.headers["Result"] for game in (mate, resigned, agreed, ending)] == [
        "0-1", "1-0", "1/2-1/2", "1/2-1/2"]
    assert mate.headers["PlyCount"] == "4"
    assert "FEN" not in agreed.headers
    assert ending.headers["FEN"] == "7k/5Q2/8/8/8/8/8/K7 w - - 0 1"
    assert ending.headers["SetUp"] == "1"
    assert "ConfigDigest" not in mate.headers


def test_a_campaigns_games_say_who_played_them(chess_snn, campaign, tmp_path):
    done = chess_snn("games", "export", campaign.path, "--out", "all.pgn")
    assert (done.returncode, done.stdout) == (0, "")
    text = (tmp_path / "all.pgn").read_text()
    games = games_in(text)
    assert len(games) == 16
    last = games[-2].headers
    assert last["Event"] == "c"
    assert last["White"] == last["Black"] == "c generation 1"
    assert (last["Iteration"], last["Generation"], last["Round"]) == ("1", "1", "1")
    assert (last["Shard"], last["GameIndex"], last["Game"]) == ("iter-000001/shard-0001", "2", "15")
    assert (last["EndedBy"], last["Termination"], last["Result"]) == (
        "ply_cap", "adjudication", "1/2-1/2")
    assert last["CutValueWhite"] == "0.25"
    assert len(last["ConfigDigest"]) == 12
    records, report = read_games(text.encode())
    assert (report.games, report.refused) == (16, {})
    assert records.cut_values_white.tolist() == [0, 0, 0.25, 0] * 4


@pytest.mark.parametrize(("filters", "numbers"), [
    (("--iteration", 1), range(9, 17)),
    (("--generation", "1:"), range(9, 17)),
    (("--iteration", ":0", "--outcome", "white"), (2, 6)),
    (("--outcome", "draw", "--limit", 3), (3, 4, 7)),
    (("--outcome", "black", "--iteration", "0:1"), (1, 5, 9, 13)),
    (("--outcome", "draw", "--generation", "0:0"), (3, 4, 7, 8)),
])
def test_filters(chess_snn, campaign, filters, numbers):
    done = chess_snn("games", "export", campaign.path, *filters)
    assert done.returncode == 0, done.stderr
    assert [int(game.headers["Game"]) for game in games_in(done.stdout)] == list(numbers)


def test_show_gives_the_game_and_its_board(chess_snn, campaign, tmp_path):
    done = chess_snn("games", "show", campaign.path, "--game", 5, "--svg", "board.svg")
    assert done.returncode == 0, done.stderr
    assert "1. f3 e5 2. g4 Qh4# 0-1" in done.stdout
    assert '[Shard "iter-000000/shard-0001"]' in done.stdout
    assert done.stdout.endswith("rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq - 1 3\n")
    assert (tmp_path / "board.svg").read_text().startswith("<svg")
    begun = chess_snn("games", "show", campaign.path, "--ply", 0).stdout
    assert begun.endswith("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1\n")


def test_stats_in_a_table_and_in_json(chess_snn, campaign):
    body = json.loads(chess_snn("games", "stats", campaign.path, "--json").stdout)
    assert (body["games"], body["positions"], body["shards"]) == (16, 48, 4)
    assert body["results"] == {"white": 4, "draw": 8, "black": 4}
    assert body["endings"] == {"checkmate": 4, "ply_cap": 4, "resigned": 4, "stalemate": 4}
    assert body["starts"] == {"ordinary": 12, "restart": 4}
    assert body["plies"] == {"mean": 3.0, "median": 3.0, "min": 1, "max": 5}
    assert body["iterations"] == [0, 1]


def test_games_of_matches(chess_snn, campaign, tmp_path):
    game = get_game("chess")
    result = play_match(game, GreedyPlayer(game), RandomPlayer("gen-000003"),
                        book_openings(game, 2, seed=0), seed=0, max_plies=20)
    write_match(campaign.match("gen-000003", "greedy"), result, {
        "name": "greedy", "created": "2026-01-02T03:04:05+00:00",
        "facts_a": {"generation": 3, "simulations": 8}, "facts_b": {},
    })
    done = chess_snn("games", "export", campaign.path, "--matches", "--generation", "2:")
    assert done.returncode == 0, done.stderr
    games = games_in(done.stdout)
    assert [game.headers["Match"] for game in games] == ["gen-000003/greedy"] * 4
    assert {game.headers["Event"] for game in games} == {"c"}
    assert {game.headers["Date"] for game in games} == {"2026.01.02"}


@pytest.mark.usefixtures("threads_for_processes")
def test_an_import_of_bad_games_alone_is_an_error_that_shows_them(chess_snn, tmp_path):
    (tmp_path / "bad.pgn").write_text(ILLEGAL + STAR)
    done = chess_snn("games", "import", "bad.pgn", "--out", "x", "--workers", 1)
    assert done.returncode == 2
    assert not (tmp_path / "x").exists(), "another import may have the name"


# ``chess-snn games`` with recorded games of 2048.


@pytest.fixture(scope="module")
def played():
    return played_games(3)


@pytest.fixture
def tiles_campaign(tmp_path, played):
    return make_tiles_campaign(tmp_path / "c", played[0])


def test_stats_are_those_of_the_games(chess_snn, tiles_campaign, played):
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


@pytest.mark.parametrize("number", [1, 3])
def test_show_gives_moves_score_and_the_board(chess_snn, tiles_campaign, played, number):
    records, points, _ = played
    first, end = records.game_offsets[number - 1 : number + 1]
    done = chess_snn("games", "show", "c", "--game", number, "--ply", 5)
    assert done.returncode == 0, done.stderr
    assert f"{points[number - 1]:,.0f}" in done.stdout
    moves = [GAME.format_action(records.states[i], records.actions[i]) for i in range(first, end)]
    shown = [word for word in done.stdout.split() if word in {"left", "up", "right", "down"}]
    assert shown == moves
    assert done.stdout.endswith(GAME.format_state(records.states[first + 5]) + "\n")


def test_the_last_board_lacks_the_last_tile(chess_snn, tiles_campaign, played):
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
