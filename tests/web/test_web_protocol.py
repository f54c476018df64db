"""The page's WebSocket: moves are checked; every frame gets an answer or closes the connection."""

import json
import random
import time
from contextlib import ExitStack

import chess
import numpy as np
import psutil
import pytest
import small_campaigns as made
from page_browser import SHIPPED, SOCKET, Browser, chess_game, tiles_game
from starlette.websockets import WebSocketDisconnect
from waiting import wait_for

from chess_snn.campaign.models.references import find_model
from chess_snn.games import get_game
from chess_snn.nets import count_spikes, network_input, record_activity
from chess_snn.web import protocol

MATE = ("f2f3", "e7e5", "g2g4", "d8h4")
PROMOTION = "8/P6k/8/8/8/8/7K/8 w - - 0 1"
QUIET_S = 20.0
MOST_GROWTH_MIB = 96.0
"""One tree and what allocators keep: a tree that is not freed would cost 64 MiB a connection."""


def position(browser, *moves, start=None):
    return browser.ask("position", game=chess_game(*moves, start=start))


def test_a_position_has_its_legal_moves_and_names(browser):
    answer = position(browser, "e2e4", "e7e5")
    board = chess.Board()
    board.push_san("e4")
    board.push_san("e5")
    assert answer["fen"] == board.fen()
    assert answer["san"] == ["e4", "e5"]
    assert answer["last"] == "e7e5"
    assert {(m["uci"], m["san"]) for m in answer["legal"]} == {
        (move.uci(), board.san(move)) for move in board.legal_moves
    }


@pytest.mark.parametrize("moves", [("e2e5",), ("e2e4", "e2e4"), ("0000",), ("Nf3",), ("",)])
def test_an_illegal_move_is_refused_and_named(browser, moves):
    answer = position(browser, *moves)
    assert (answer["type"], answer["code"]) == ("error", "illegal-move")
    assert repr(moves[-1]) in answer["message"]


@pytest.mark.parametrize("start", ["", "x", "8/8/8/8/8/8/8/8 w - - 0 1", "9/8/8/8/8/8/8/8 w"])
def test_an_impossible_start_is_refused(browser, start):
    answer = position(browser, start=start)
    assert (answer["type"], answer["code"]) == ("error", "position")


@pytest.mark.parametrize(("moves", "start", "reason", "result"), [
    (MATE, None, "checkmate", "0-1"),
    ((), "k7/8/1Q6/8/8/8/8/7K b - - 0 1", "stalemate", "1/2-1/2"),
    ((), "k7/8/8/8/8/8/8/7K w - - 0 1", "insufficient material", "1/2-1/2"),
    (("g1f3", "g8f6", "f3g1", "f6g8") * 2, None, "threefold repetition", "1/2-1/2"),
    ((), "k7/8/8/8/8/8/8/6RK w - - 100 80", "fifty moves", "1/2-1/2"),
])
def test_games_end_by_the_rules(browser, moves, start, reason, result):
    answer = position(browser, *moves, start=start)
    assert answer["over"] == {"reason": reason, "result": result}
    assert answer["legal"] == []
    refused = browser.search(moves, game=chess_game(*moves, start=start))
    assert (refused["type"], refused["code"]) == ("error", "usage")


def test_a_promotion_offers_four_pieces(browser):
    answer = position(browser, start=PROMOTION)
    assert {move["uci"] for move in answer["legal"]} >= {f"a7a8{piece}" for piece in "qrbn"}
    assert position(browser, "a7a8n", start=PROMOTION)["fen"].startswith("N7/")


def test_a_search_answers_with_its_candidates(browser):
    answer = browser.search(simulations=40)
    assert answer["type"] == "result"
    assert answer["visits"] >= 40
    assert sum(answer["wdl_white"]) == pytest.approx(1)
    first, second = answer["candidates"][:2]
    assert first["visits"] >= second["visits"]
    assert first["line_uci"][0] == first["uci"]
    policies = [move["policy"] for move in answer["candidates"]]
    assert all(0 <= policy <= 1 for policy in policies)


def test_no_simulations_ask_the_policy_alone(browser):
    answer = browser.search(simulations=0)
    assert answer["visits"] == 0
    policies = [move["policy"] for move in answer["candidates"]]
    assert policies == sorted(policies, reverse=True)


def test_values_are_whites_for_both_sides(browser):
    queen_up = "k7/8/8/8/8/8/8/KQ6 {} - - 0 1"
    for side in "wb":
        answer = browser.search(game=chess_game(start=queen_up.format(side)), simulations=30)
        assert answer["value_white"] > 0.2, side


def test_a_mate_is_found_and_proved(browser):
    answer = browser.search(MATE[:-1], simulations=50)
    assert answer["candidates"][0]["uci"] == "d8h4"
    assert answer["candidates"][0]["mate"] == 1
    assert answer["value_white"] == -1


def spikes_counted(game_name: str, state: np.ndarray) -> float:
    """Spikes that `chess-snn analyse` counts."""
    game = get_game(game_name)
    network = find_model(SHIPPED[game_name]).load(game)
    planes = network_input(game.planes(state[None]), game.spec.board_shape)
    return sum(layer.spikes for layer in count_spikes(network, planes).layers.values())


def test_spikes_are_those_that_analyse_counts(browser):
    game = get_game("chess")
    for moves in ((), ("e2e4",)):
        browser.spikes.clear()
        browser.search(moves)
        header, payload = browser.spikes[0]
        state = game.parse_state(position(browser, *moves)["fen"])
        assert header["of"] == "position"
        assert header["total"] == spikes_counted("chess", state)
        assert header["bits"] == 8
        assert int(np.frombuffer(payload, np.uint8).sum()) == header["total"]
        assert header["total"] == sum(layer["spikes"] for layer in header["layers"])
        assert 0 < header["work"]["accumulates"] < header["work"]["dense"]


def test_spikes_of_the_best_line_follow_the_search(browser):
    browser.search(simulations=60)
    lines = [header for header, _ in browser.spikes if header["of"] == "line"]
    assert lines
    assert all(header["line"].startswith("1. ") for header in lines)


def test_from_a_players_second_turn_on_changes_follow_the_spikes(browser):
    game = get_game("chess")
    network = find_model(SHIPPED["chess"]).load(game)
    for moves in ((), ("e2e4",), ("e2e4", "e7e5")):
        browser.spikes.clear()
        browser.search(moves)
        changes = [frame for frame in browser.spikes if frame[0]["of"] == "changes"]
        assert len(changes) == (len(moves) == 2)
    ((header, payload),) = changes
    states = [game.parse_state(position(browser, *played)["fen"]) for played in (moves, ())]
    new, old = record_activity(
        network, network_input(game.planes(np.stack(states)), game.spec.board_shape)
    )
    wanted = [
        np.abs(layer.spikes_TX.astype(int) - old[name].spikes_TX) for name, layer in new.items()
    ]
    assert np.frombuffer(payload, np.uint8).tolist() == [
        spikes for layer in wanted for spikes in layer.ravel()
    ]
    assert header["total"] == sum(layer.sum() for layer in wanted)
    assert header["neurons"] == sum(map(np.count_nonzero, wanted)) / sum(
        layer.size for layer in wanted
    )


def test_binary_spikes_are_packed(make_client, tmp_path):
    weights = str(made.make_weights(tmp_path / "net.safetensors"))
    with make_client(weights).websocket_connect(SOCKET) as socket:
        browser = Browser(socket)
        browser.search(model=weights)
    header, payload = browser.spikes[0]
    bits, at = [], 0
    for layer in header["layers"]:
        size = int(np.prod(layer["shape"]))
        packed = np.frombuffer(payload, np.uint8, (size + 7) // 8, at)
        bits.append(int(np.unpackbits(packed)[:size].sum()))
        at += len(packed)
    assert header["bits"] == 1
    assert at == len(payload)
    assert bits == [layer["spikes"] for layer in header["layers"]]


def test_2048_moves_bring_the_tiles_of_the_seed(browser):
    start = browser.ask("position", game=tiles_game())
    answer = browser.ask("position", game=tiles_game(start["legal"][0]))
    again = browser.ask("position", game=tiles_game(start["legal"][0], start=start["board"]))
    assert answer == {**again, "id": answer["id"]}
    assert answer["ply"] == 1
    wrong = {"left", "up", "right", "down"} - set(start["legal"])
    for move in wrong:
        assert browser.ask("position", game=tiles_game(move))["code"] == "illegal-move"


def test_2048_hints_rank_the_legal_moves_by_as_many_simulations_as_asked_for(browser):
    start = browser.ask("position", game=tiles_game())
    visits = []
    for simulations in (16, 48):
        answer = browser.ask(
            "search", game=tiles_game(), model=SHIPPED["2048"], simulations=simulations
        )
        assert {move["move"] for move in answer["candidates"]} == set(start["legal"])
        visits.append(sum(move["visits"] for move in answer["candidates"]))
        best = answer["candidates"][0]
        assert best["points"] == pytest.approx(answer["score_to_go"], rel=0.5)
    assert visits[1] > 2 * visits[0]
    assert browser.spikes[0][0]["total"] == spikes_counted(
        "2048", get_game("2048").parse_state(start["board"])
    )


def test_pgn_comes_back_as_it_was_written(browser):
    pgn = browser.ask(
        "export", game=chess_game(*MATE), white="me", black='a "quoted" name', result="0-1"
    )["pgn"]
    assert "Qh4#" in pgn
    assert browser.ask("export", game=chess_game(*MATE), white="me", black="")["pgn"].endswith(
        "Qh4# 0-1\n"
    )
    answer = browser.ask("import", text=pgn)
    assert answer["moves"] == list(MATE)
    assert (answer["white"], answer["black"], answer["result"]) == ("me", 'a "quoted" name', "0-1")


@pytest.mark.parametrize(("text", "known"), [
    ("8/P6k/8/8/8/8/7K/8 w - - 0 1", ("", "", "*")), ("1. e4 e5 *", ("", "", "*")),
    ('[White "?"]\n[Black "b"]\n[Result "1-0"]\n\n1. e4 1-0', ("", "b", "1-0")),
    (f'[White "{"w" * 600}"]\n[Result "won"]\n\n1. e4 *', ("w" * 500, "", "*")),
])
def test_what_an_import_says_of_its_players_can_be_exported(browser, text, known):
    answer = browser.ask("import", text=text)
    facts = {name: answer[name] for name in ("white", "black", "result")}
    assert tuple(facts.values()) == known
    game = chess_game(*answer["moves"], start=answer["start"])
    assert browser.ask("export", game=game, **facts)["type"] == "exported"


@pytest.mark.parametrize("text", [
    "", "hello", "1. e4 e5 2. Ke3", "[Event", '[FEN "x"]\n\n1. e4', "8/8/8/8/8/8/8/8 w - - 0 1",
])
def test_bad_imports_are_refused(browser, text):
    assert browser.ask("import", text=text)["type"] == "error"


BAD_FRAMES = [
    "", "null", "{", "[]", "7", '"x"', "{}", '{"type":"search"}', '{"type":"go","id":1}',
    '{"type":"stop","id":-1}', '{"type":"stop","id":"1"}', '{"type":"stop","id":1,"more":2}',
    json.dumps({"type": "position", "id": 1, "game": {"kind": "go"}}),
    json.dumps({"type": "position", "id": 1, "game": chess_game(*["e2e4"] * 1201)}),
    json.dumps({"type": "search", "id": 1, "game": chess_game(), "model": "", "simulations": 1}),
    json.dumps({"type": "search", "id": 1, "game": chess_game(), "model": "x",
                "simulations": 10**9}),
    *(json.dumps({"type": "search", "id": 1, "game": tiles_game(), "model": "x", **limits})
      for limits in ({"simulations": 0}, {"simulations": 1001}, {"simulations": 1, "seconds": 1})),
    "[" * 20_000, "\x00", '{"type":"stop","id":1e400}',
]


@pytest.mark.parametrize("frame", BAD_FRAMES, ids=range(len(BAD_FRAMES)))
def test_a_malformed_frame_is_answered_and_the_connection_goes_on(browser, frame):
    browser.socket.send_text(frame)
    answer = browser.receive()
    assert (answer["type"], answer["code"]) == ("error", "protocol")
    assert "\n" not in answer["message"]
    assert position(browser)["type"] == "position"


def test_many_malformed_frames_close_the_connection(browser):
    for _ in range(20):
        browser.socket.send_bytes(b"\xff")
        assert browser.receive()["code"] == "protocol"
    with pytest.raises(AssertionError, match="1008"):
        browser.receive()


def test_a_frame_that_is_too_large_closes_the_connection(browser):
    browser.socket.send_text("x" * (protocol.MAX_MESSAGE_BYTES + 1))
    with pytest.raises(AssertionError, match="1009"):
        browser.receive()


def test_random_frames_never_hang(browser):
    rng = random.Random(1)
    good = json.dumps({"type": "position", "id": 1, "game": chess_game("e2e4")})
    for _ in range(15):
        at = rng.randrange(len(good))
        browser.socket.send_text(good[:at] + chr(rng.randrange(32, 300)) + good[at + 1 :])
        assert browser.receive()["type"] in ("error", "position")


@pytest.mark.parametrize("model", ["/etc/passwd", "shipped/../chess", "shipped/go", "../x", "x:3"])
def test_networks_that_are_not_offered_are_refused(browser, model):
    answer = browser.search(model=model)
    assert (answer["type"], answer["code"]) == ("error", "usage")


def test_a_network_of_another_game_is_refused(browser):
    assert browser.search(model="shipped/2048")["type"] == "error"


@pytest.mark.slow
def test_a_model_that_disappears_is_an_error_and_comes_back(make_client, tmp_path):
    weights = made.make_weights(tmp_path / "net.safetensors")
    with make_client(str(weights)).websocket_connect(SOCKET) as socket:
        browser = Browser(socket)
        assert browser.search(model=str(weights))["type"] == "result"
        away = weights.rename(tmp_path / "away")
        assert browser.search(model=str(weights))["type"] == "error"
        assert browser.search()["type"] == "result"
        away.rename(weights)
        assert browser.search(model=str(weights))["type"] == "result"
        weights.write_bytes(b"damaged")
        assert browser.search(model=str(weights))["type"] == "error"


def policies(answer: dict) -> dict[str, float]:
    assert answer["type"] == "result", answer
    return {move["uci"]: move["policy"] for move in answer["candidates"]}


def test_networks_with_relative_names_are_searched(make_client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made.make_weights(tmp_path / "net.safetensors")
    made.make_networks(tmp_path / "c", [0])
    names = ("./net.safetensors", "c/", "c@0", "c#ticks=1")
    with make_client(*names).websocket_connect(SOCKET) as socket:
        browser = Browser(socket)
        for name in names:
            assert browser.search(model=name)["type"] == "result", name


def test_a_network_that_is_replaced_is_searched_anew(make_client, tmp_path):
    weights = made.make_weights(tmp_path / "net.safetensors", seed=1)
    with make_client(str(weights)).websocket_connect(SOCKET) as socket:
        browser = Browser(socket)
        old = policies(browser.search(model=str(weights), simulations=0))
        made.make_weights(tmp_path / "new.safetensors", seed=2).rename(weights)
        assert policies(browser.search(model=str(weights), simulations=0)) != old
        made.make_weights(tmp_path / "new.safetensors", seed=1).rename(weights)
        assert policies(browser.search(model=str(weights), simulations=0)) == old


def test_a_network_plays_with_two_numbers_of_ticks_side_by_side(make_client, tmp_path):
    weights = str(made.make_weights(tmp_path / "net.safetensors"))
    found: dict[str, list] = {weights: [], f"{weights}#ticks=1": []}
    with make_client(*found).websocket_connect(SOCKET) as socket:
        browser = Browser(socket)
        for name in [*found, *found]:
            browser.spikes.clear()
            answer = browser.search(model=name, simulations=0)
            ticks = browser.spikes[0][0]["layers"][0]["shape"][0]
            found[name].append((answer["model"], ticks, policies(answer)))
    (two, two_again), (one, one_again) = found.values()
    assert two == two_again
    assert one == one_again
    assert (two[:2], one[:2]) == ((weights, 2), (f"{weights}#ticks=1", 1))
    assert two[2] != one[2]


def test_stop_ends_a_search_with_its_result(browser):
    number = browser.send(
        "search", game=chess_game(), model=SHIPPED["chess"], simulations=protocol.MAX_SIMULATIONS
    )
    assert browser.receive()["type"] == "info"
    begun_s = time.monotonic()
    browser.send("stop")
    answer = browser.answer()
    assert (answer["type"], answer["id"]) == ("result", number)
    assert answer["visits"] < protocol.MAX_SIMULATIONS
    assert time.monotonic() - begun_s < QUIET_S


def test_a_search_ends_when_its_seconds_are_over(browser):
    browser.send(
        "search", game=chess_game(), model=SHIPPED["chess"], seconds=0.1,
        simulations=protocol.MAX_SIMULATIONS,
    )
    answer = browser.answer()
    assert answer["type"] == "result"
    assert answer["visits"] < protocol.MAX_SIMULATIONS
    assert answer["seconds"] >= 0.1


def test_a_new_search_takes_the_place_of_the_old_one(browser):
    fields = {"game": chess_game(), "model": SHIPPED["chess"]}
    old = browser.send("search", simulations=protocol.MAX_SIMULATIONS, **fields)
    new = browser.send("search", simulations=4, **fields)
    for number in (old, new):
        answer = browser.answer()
        assert (answer["type"], answer["id"]) == ("result", number)


def test_a_search_of_2048_can_be_stopped_and_replaced(browser):
    search = {
        "game": tiles_game(), "model": SHIPPED["2048"],
        "simulations": protocol.MAX_TILE_SIMULATIONS,
    }
    numbers = [browser.send("search", **search)]
    browser.send("stop")
    numbers += [browser.send("search", **search), browser.send("search", **search)]
    browser.send("stop")
    for number in numbers:
        answer = browser.receive()
        assert (answer["type"], answer["id"]) == ("result", number)
        visits = sum(move["visits"] for move in answer["candidates"])
        assert 1 <= visits < protocol.MAX_TILE_SIMULATIONS


def test_a_closed_tab_stops_its_search(client, monkeypatch):
    searches = []
    from chess_snn.web import searching  # noqa: PLC0415

    whole = searching.Searcher.search

    def search(self, request, stop, send):
        searches.append("begun")
        whole(self, request, stop, send)
        searches.append("ended")

    monkeypatch.setattr(searching.Searcher, "search", search)
    with client.websocket_connect(SOCKET) as socket:
        browser = Browser(socket)
        browser.send("search", game=chess_game(), model=SHIPPED["chess"],
                     simulations=protocol.MAX_SIMULATIONS)
        assert browser.receive()["type"] == "info"
    wait_for(lambda: searches == ["begun", "ended"], "it was not stopped", QUIET_S)


@pytest.mark.slow
def test_ten_clients_search_at_once(client):
    openings = [move.uci() for move in chess.Board().legal_moves][:10]
    with ExitStack() as stack:
        browsers = [
            Browser(stack.enter_context(client.websocket_connect(SOCKET))) for _ in openings
        ]
        for browser, move in zip(browsers, openings, strict=True):
            browser.send("search", game=chess_game(move), model=SHIPPED["chess"], simulations=30)
        for browser, move in zip(browsers, openings, strict=True):
            answer = browser.answer()
            assert answer["type"] == "result", answer
            board = chess.Board()
            board.push_uci(move)
            assert all(
                chess.Move.from_uci(c["uci"]) in board.legal_moves for c in answer["candidates"]
            )


def test_more_pages_than_there_is_room_for_are_sent_away(client, monkeypatch):
    monkeypatch.setattr("chess_snn.web.server.MAX_CONNECTIONS", 2)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(client.websocket_connect(SOCKET))
        third = stack.enter_context(client.websocket_connect(SOCKET))
        with pytest.raises(WebSocketDisconnect) as closed:
            third.receive_text()
        assert closed.value.code == 1013
    with client.websocket_connect(SOCKET) as later:
        assert Browser(later).ask("position", game=chess_game())["type"] == "position"


def test_a_long_game_is_described(browser):
    moves = ("g1f3", "g8f6", "f3g1", "f6g8") * 75
    assert len(position(browser, *moves)["san"]) == 300


def play_games(client, count: int) -> None:
    """Short games, each with searches; every tenth in a new connection."""
    rng = random.Random(count)
    for _ in range(count // 10):
        with client.websocket_connect(SOCKET) as socket:
            browser = Browser(socket)
            for _ in range(10):
                board = chess.Board()
                for _ in range(6):
                    board.push(rng.choice(list(board.legal_moves)))
                moves = [move.uci() for move in board.move_stack]
                assert position(browser, *moves)["type"] == "position"
                assert browser.search(moves, simulations=4)["type"] == "result"
                browser.spikes.clear()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_memory_stays_flat_over_a_thousand_games(client):
    process = psutil.Process()
    play_games(client, 30)  # they warm it up
    before = process.memory_info().rss
    play_games(client, 1000)
    assert (process.memory_info().rss - before) / 2**20 < MOST_GROWTH_MIB
