"""Labels of recorded games, from engines and networks, also if the teacher dies."""

from dataclasses import replace

import numpy as np
import pytest
from made_imports import GAMES_EACH, easy_games, make_import

from chess_snn.campaign import load_config
from chess_snn.campaign.labelling import Teaching, label_games
from chess_snn.campaign.models.references import find_model
from chess_snn.campaign.store.collection import open_collection
from chess_snn.data import read_shard_of, write_shard
from chess_snn.errors import ConfigError, CorruptDataError, EngineError, UsageError
from chess_snn.evaluation.engines.teacher import Lines
from chess_snn.games import get_game
from chess_snn.nets import build_network, save_network
from chess_snn.pgn.folder import ImportFolder
from chess_snn.self_play.labels import label_records
from tests.evaluation.fake_engines import num_started, write_engine

ONE_LINE = Lines(1)


def labels(path):
    """The labelled games in ``path``, by shard."""
    spec = get_game("chess").spec
    return [read_shard_of(spec, shard)[0] for shard in ImportFolder.open(path).shards()]


def fake(folder, fault):
    return Teaching(f"uci:{write_engine(folder, fault)}@5", lines=ONE_LINE)


def write_anew(shard, records):
    """Other games in the place of a shard."""
    shard.unlink()
    write_shard(shard, records, {"game": "chess"})


@pytest.fixture
def games(tmp_path):
    """Two shards of short games, the second ones longer."""
    return open_collection(make_import(tmp_path / "games"))


@pytest.mark.usefixtures("threads_for_processes")
def test_targets_and_values_change_and_nothing_else(games, tmp_path):
    labelled = label_games(games, tmp_path / "out", fake(tmp_path, "sound"))
    assert labelled.report.games == 2 * GAMES_EACH
    game = get_game("chess")
    for shard, found in zip(games.shards, labels(tmp_path / "out"), strict=True):
        given, _ = shard.read()
        for column in ("states", "actions", "game_offsets", "outcomes_white", "terminations"):
            assert np.array_equal(getattr(found, column), getattr(given, column))
        assert np.all(found.values_stm == 0)
        # The engine names the alphabetically first move.
        legal, counts = game.legal_actions(found.states)
        for row in range(0, found.num_positions, 7):
            moves = [game.format_action(state_row(found, row), a) for a in legal[row, :counts[row]]]
            named = game.format_action(state_row(found, row), found.target_actions[row])
            assert named == min(moves)


def state_row(records, row):
    state = np.zeros(get_game("chess").spec.state_words, np.uint64)
    state[: records.states.shape[1]] = records.states[row]
    return state


@pytest.mark.usefixtures("threads_for_processes")
def test_an_interrupted_run_goes_on_and_labels_nothing_twice(games, tmp_path):
    teaching, out = fake(tmp_path, "sound"), tmp_path / "out"
    first = label_games(games, out, teaching, limit=GAMES_EACH)
    assert first.report.games == GAMES_EACH
    rest = label_games(games, out, teaching, workers=2)
    assert rest.report.games == 2 * GAMES_EACH
    assert rest.new_positions == rest.report.positions - first.report.positions
    started = num_started(tmp_path)
    assert label_games(games, out, teaching).new_positions == 0
    assert num_started(tmp_path) == started + 1  # for its name


@pytest.mark.slow
@pytest.mark.usefixtures("threads_for_processes")
def test_an_engine_that_dies_now_and_then_is_replaced(games, tmp_path):
    write_anew(games.shards[0].path, easy_games(2, ply_cap=10))  # each process labels two positions
    few = open_collection(tmp_path / "games")
    label_games(few, tmp_path / "out", fake(tmp_path, "dies now and then"), limit=2)
    assert num_started(tmp_path) > 2
    assert len(labels(tmp_path / "out")) == 1


@pytest.mark.slow
@pytest.mark.fault(21)
def test_labels_made_before_an_engine_dies_for_good_are_kept(games, tmp_path):
    out, teaching = tmp_path / "out", fake(tmp_path, "sound")
    label_games(games, out, teaching, limit=GAMES_EACH)
    kept = labels(out)
    write_engine(tmp_path, "dies", everywhere=True).rename(tmp_path / "sound.py")
    with pytest.raises(EngineError):
        label_games(games, out, teaching)
    assert len(labels(out)) == len(kept) == 1


@pytest.mark.usefixtures("threads_for_processes")
def test_a_folder_keeps_to_its_teacher_and_its_games(games, tmp_path):
    out = tmp_path / "out"
    label_games(games, out, fake(tmp_path, "sound"))
    with pytest.raises(UsageError, match=str(out)):
        label_games(games, out, Teaching(fake(tmp_path, "sound").text, lines=Lines(1, 99.0)))
    write_anew(games.shards[1].path, easy_games(GAMES_EACH, ply_cap=33))
    with pytest.raises(UsageError, match=str(out)):
        label_games(open_collection(tmp_path / "games"), out, fake(tmp_path, "sound"))


@pytest.mark.usefixtures("threads_for_processes")
def test_a_damaged_shard_of_labels_is_named(games, tmp_path):
    out = tmp_path / "out"
    label_games(games, out, fake(tmp_path, "sound"))
    shard = ImportFolder.open(out).shards()[1]
    shard.write_bytes(shard.read_bytes()[:-40])
    with pytest.raises(CorruptDataError, match=str(shard)):
        label_games(games, out, fake(tmp_path, "sound"))


def test_an_engine_does_not_teach_2048():
    with pytest.raises(ConfigError, match="2048"):
        Teaching("stockfish@5").describe(get_game("2048"))


@pytest.mark.usefixtures("threads_for_processes")
def test_a_network_teaches_what_its_search_finds(games, tmp_path):
    game = get_game("chess")
    config = load_config("smoke")
    network = build_network(game.spec, config.net.network(), 5)
    save_network(tmp_path / "weights.safetensors", network)
    model = find_model(str(tmp_path / "weights.safetensors"), lambda address: tmp_path / address)
    teaching = Teaching("large", replace(model, simulations=8))
    label_games(games, tmp_path / "out", teaching, limit=GAMES_EACH)
    found = labels(tmp_path / "out")[0]
    given, _ = games.shards[0].read()
    again = label_records(game, given, slice(0, GAMES_EACH), [teaching.start(game)])
    assert np.array_equal(found.target_actions, again.target_actions)
    assert found.target_weights == pytest.approx(again.target_weights, abs=1e-3)
    assert np.abs(found.values_stm).max() > 0
