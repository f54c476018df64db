"""A campaign on the page: what its folder says, and nothing written to it."""

import shutil

import chess
import numpy as np
import pytest
import small_campaigns as made
from page_browser import SOCKET, Browser

from chess_snn.campaign.store.collection import open_collection
from chess_snn.campaign.viewing.watching import CampaignWatch
from chess_snn.data import GameRecords, write_shard
from chess_snn.errors import CampaignError
from chess_snn.games import get_game
from chess_snn.web import campaign_page
from chess_snn.web.campaign_page import CampaignPage
from chess_snn.web.networks import RegisteredVersions
from tasks.tracking import TrackingError


def snapshot(folder):
    """Size and time of every file."""
    facts = {path: path.stat() for path in sorted(folder.rglob("*"))}
    return {path: (fact.st_size, fact.st_mtime_ns) for path, fact in facts.items()}


@pytest.fixture(autouse=True)
def always_look(monkeypatch):
    monkeypatch.setattr(campaign_page, "_LOOK_PERIOD_S", 0.0)


@pytest.fixture
def played(make_client, played_campaign):
    return make_client(str(played_campaign.path), campaign=CampaignPage(played_campaign.path))


def test_without_a_campaign_there_is_none(client):
    for path in ("/api/campaign", "/api/campaign/games", "/api/campaign/games/0/1"):
        assert client.get(path).status_code == 404


def test_a_folder_without_a_campaign_is_refused(tmp_path):
    with pytest.raises(CampaignError):
        CampaignPage(tmp_path)


def test_the_state_is_what_watch_shows(played, played_campaign):
    state = played.get("/api/campaign").json()
    view = CampaignWatch(played_campaign.path).look()
    assert state["name"] == played_campaign.name
    assert state["iterations"] == len(view.receipts) == 2
    assert state["champion"] == view.champion
    assert [alarm["name"] for alarm in state["alarms"]] == [alarm.name for alarm in view.alarms]
    curves = {curve["column"]: curve for curve in state["curves"]}
    for column in ("policy_loss", "draw_rate", "elo"):
        wanted = [[row["iteration"], row[column]] for row in view.rows if row[column] is not None]
        assert curves[column]["points"] == wanted
    ends = [end for row in view.rows for end in (row["elo_low"], row["elo_high"])]
    wanted = [f"{min(ends):.0f}", f"{max(ends):.0f}"]
    assert [curves["elo"][end] for end in ("from", "to")] == wanted
    assert state["ladder"] is None


def test_the_page_sees_a_new_iteration(make_client, tmp_path):
    folder = made.make_campaign(tmp_path / "c")
    client = make_client(campaign=CampaignPage(folder.path))
    assert client.get("/api/campaign").json()["iterations"] == 0
    assert client.get("/api/campaign/games").json()["games"] == []
    for iteration in range(2):
        made.finish(folder, iteration)
    state = client.get("/api/campaign").json()
    assert state["iterations"] == 2
    points = next(c for c in state["curves"] if c["column"] == "policy_loss")["points"]
    assert points == [[0, 3.0], [1, 2.9]]


def test_a_long_campaign_is_thinned_and_keeps_its_newest(make_client, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign_page, "_MOST_POINTS", 2)
    folder = made.make_campaign(tmp_path / "c")
    for iteration in range(4):
        made.finish(folder, iteration)
    state = make_client(campaign=CampaignPage(folder.path)).get("/api/campaign").json()
    points = next(c for c in state["curves"] if c["column"] == "policy_loss")["points"]
    assert [iteration for iteration, _ in points] == [1, 3]


def test_newest_games_replay_to_their_results(played, played_campaign):
    listed = played.get("/api/campaign/games").json()
    assert listed["iteration"] == 1
    numbers = [game["number"] for game in listed["games"]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == 6
    for entry in listed["games"]:
        game = played.get(f"/api/campaign/games/1/{entry['number']}").json()
        assert (game["result"], game["ending"]) == (entry["result"], entry["ending"])
        assert len(game["moves"]) == len(game["names"]) == entry["plies"]
        board = chess.Board(game["positions"][0])
        for move, name, after in zip(
            game["moves"], game["names"], game["positions"][1:], strict=True
        ):
            assert board.san(chess.Move.from_uci(move)) == name
            board.push_uci(move)
            assert board.fen().split()[:3] == after.split()[:3]


def test_no_more_games_are_listed_than_the_page_shows(played, monkeypatch):
    everything = played.get("/api/campaign/games").json()["games"]
    monkeypatch.setattr(campaign_page, "_MOST_GAMES", 4)
    assert played.get("/api/campaign/games").json()["games"] == everything[:4]


@pytest.mark.parametrize(("moves", "result"), [
    (("f2f3", "e7e5", "g2g4", "d8h4"), "0-1"),
    (("e2e4", "e7e5", "d1h5", "b8c6", "f1c4", "g8f6", "h5f7"), "1-0"),
])
def test_a_game_that_was_won_names_the_winner(tmp_path, moves, result):
    folder = made.make_campaign(tmp_path / "c")
    made.begin(folder, 0)
    write_shard(folder.shard(0, 0), mated_after(moves), {"game": "chess", "generation": 0})
    page = CampaignPage(folder.path)
    assert [game["result"] for game in page.games()["games"]] == [result]
    assert page.game(0, 1)["result"] == result


def mated_after(moves):
    """The records of one game that ends in mate."""
    game = get_game("chess")
    batch, states, actions = game.allocate(1), [], []
    for move in moves:
        states.append(batch.state[0, : game.spec.record_words].copy())
        actions.append(game.parse_action(batch.state[0], move))
        game.step(batch, np.array(actions[-1:], np.int16))
    assert game.spec.terminations[batch.termination[0]] == "checkmate"
    return GameRecords(
        states=np.array(states), actions=np.array(actions, np.int16),
        values_stm=np.zeros(len(moves), np.float32), surprises=np.zeros(len(moves), np.float32),
        target_offsets=np.arange(len(moves) + 1), target_actions=np.array(actions, np.int16),
        target_weights=np.ones(len(moves), np.float32), game_offsets=np.array([0, len(moves)]),
        outcomes_white=np.array([1 if len(moves) % 2 else -1], np.int8),
        terminations=batch.termination.copy(), cut_values_white=np.zeros(1, np.float32),
        start_kinds=np.zeros(1, np.uint8),
    )


def test_games_of_2048_replay_too(make_client, tmp_path):
    folder = made.make_campaign(tmp_path / "c", settings=made.MICRO_2048)
    made.play_first_games(folder)
    client = make_client(campaign=CampaignPage(folder.path))
    first = client.get("/api/campaign/games").json()["games"][0]
    game = client.get(f"/api/campaign/games/0/{first['number']}").json()
    assert game["kind"] == "2048"
    assert len(game["positions"]) == first["plies"] + 1
    assert set(game["moves"]) <= {"left", "up", "right", "down"}


@pytest.mark.parametrize("place", ["7/1", "1/0", "1/7", "1/999999999999"])
def test_games_that_are_not_there_are_refused(played, place):
    answer = played.get(f"/api/campaign/games/{place}")
    assert answer.status_code in (404, 409)


@pytest.mark.parametrize("number", [
    "9" * 10, "9" * 255, "9" * 5000, "0" * 5000, "-1", "+1", "1.0", "1e3", "٣", "%00", " 1", "",
])
def test_what_is_no_number_of_a_game_is_not_found(played, number):
    for place in (f"{number}/1", f"1/{number}"):
        assert played.get(f"/api/campaign/games/{place}").status_code == 404


def test_all_generations_are_offered_and_play(played, played_campaign):
    offered = [entry["model"] for entry in played.get("/api/networks").json()]
    path = played_campaign.path
    assert offered[:5] == [
        str(path), f"{path}@champion", f"{path}@2", f"{path}@1", f"{path}@0"
    ]
    with played.websocket_connect(SOCKET) as socket:
        answers = [Browser(socket).search(model=model, simulations=2) for model in offered[:5]]
    assert [answer["model"] for answer in answers][2:] == offered[2:5]


def test_a_registry_that_does_not_answer_is_named_and_the_rest_is_offered(make_client):
    def ask():
        raise TrackingError("the store is away")

    client = make_client(versions=RegisteredVersions(ask, "chess"))
    offered = []
    while not offered or offered[-1]["model"]:
        offered = client.get("/api/networks").json()
    assert offered[-1] == {"model": "", "label": "registry: the store is away", "game": "chess"}
    assert offered[0]["model"].startswith("shipped/")
    with client.websocket_connect(SOCKET) as socket:
        answer = Browser(socket).search(model="shipped/chess", simulations=2)
        assert answer["type"] == "result", answer


def test_nothing_is_written(played, played_campaign):
    before = snapshot(played_campaign.path)
    for path in ("/api/campaign", "/api/campaign/games", "/api/campaign/games/1/1"):
        assert played.get(path).status_code == 200
    assert snapshot(played_campaign.path) == before


def test_a_folder_that_disappears_is_one_line(make_client, played_campaign, tmp_path):
    copied = tmp_path / "copied"
    shutil.copytree(played_campaign.path, copied)
    assert open_collection(copied).num_games == 12
    client = make_client(campaign=CampaignPage(copied))
    shutil.rmtree(copied)
    answer = client.get("/api/campaign")
    assert answer.status_code == 409
    assert answer.json()["code"] == "campaign"
    assert "\n" not in answer.json()["message"]
    assert client.get("/api/campaign/games").json()["games"] == []
