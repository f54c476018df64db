"""A campaign whose games an engine labels: what is learnt, and what happens if the engine fails."""

from functools import partial

import numpy as np
import pytest
from small_campaigns import MICRO, MICRO_2048, make_campaign, play_first_games

from chess_snn.campaign import load_config
from chess_snn.campaign.machine.workers import config_here
from chess_snn.campaign.stages import play_shard, train_generation
from chess_snn.data import read_shard
from chess_snn.errors import ConfigError, EngineError
from chess_snn.games import get_game
from tests.evaluation.fake_engines import write_engine

TAUGHT = (
    *MICRO, "search.kind=policy", "training.surprise_share=0.0", "training.root_value_share=1.0",
)


def taught(path, engine, *changes):
    return make_campaign(path, f"self_play.teacher=uci:{engine}@5", *changes, settings=TAUGHT)


@pytest.mark.slow
def test_the_policy_to_learn_is_the_engines(tmp_path):
    folder = taught(tmp_path / "c", write_engine(tmp_path, "sound"))
    play_first_games(folder)
    records, _ = read_shard(folder.shard(0, 0))
    game = get_game("chess")
    legal, counts = game.legal_actions(records.states)
    # The engine names the alphabetically first move.
    assert len(records.target_actions) == records.num_positions
    assert np.all(records.values_stm == 0)
    state = np.zeros(game.spec.state_words, np.uint64)
    for row in range(0, records.num_positions, 7):
        state[: records.states.shape[1]] = records.states[row]
        moves = [game.format_action(state, action) for action in legal[row, : counts[row]]]
        assert game.format_action(state, records.target_actions[row]) == min(moves)


@pytest.mark.slow
def test_labels_do_not_depend_on_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("chess_snn.self_play.labels.POSITIONS_AT_ONCE", 5)
    engine = write_engine(tmp_path, "sound")
    digests = set()
    for threads in (1, 3):
        folder = taught(tmp_path / str(threads), engine)
        play_first_games(folder)
        folder.shard(0, 0).unlink()
        play_shard(folder.path, 0, 0, num_threads=threads)
        records, _ = read_shard(folder.shard(0, 0))
        assert records.num_positions > 5 * threads
        digests.add((records.target_actions.tobytes(), records.states.tobytes()))
    assert len(digests) == 1


@pytest.mark.slow
def test_a_teacher_that_dies_leaves_no_shard_and_another_one_goes_on(tmp_path):
    engine = write_engine(tmp_path, "dies", everywhere=True)
    folder = taught(tmp_path / "c", engine)
    with pytest.raises(EngineError):
        play_first_games(folder)
    assert not folder.shard(0, 0).exists()
    write_engine(tmp_path, "sound").rename(engine)
    play_first_games(folder)
    assert train_generation(folder.path, 0).metrics["target_entropy"] == pytest.approx(0.0)


@pytest.mark.parametrize(("settings", "said"), [
    ((*TAUGHT, "search.kind=gumbel"), "search.kind"),
    ((*TAUGHT, "self_play.teacher=minimax:2"), "minimax:2"),
    ((*TAUGHT, "self_play.teacher="), "self_play.teacher"),
    ((*TAUGHT, "self_play.teacher=stockfish"), "stockfish"),
    ((*MICRO_2048, *TAUGHT[-3:], "self_play.practice_share_last=0"), "2048"),
])
def test_what_a_teacher_cannot_do_is_refused(settings, said):
    with pytest.raises(ConfigError, match=said):
        config_here(partial(load_config, settings=["self_play.teacher=uci:/engine@5", *settings]))


def test_a_missing_engine_is_found_before_the_campaign_starts(tmp_path):
    settings = [*TAUGHT, f"self_play.teacher=uci:{tmp_path}/none@5"]
    with pytest.raises(EngineError, match="none"):
        load_config(settings=settings).find_engines()
