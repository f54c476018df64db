"""Learning from a dataset: what is learnt, in which order, and that a kill changes nothing."""

import itertools
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from made_imports import easy_games
from supervised_steps import supervised_progress

from chess_snn.data import ReplayWindow, read_manifest, write_shard
from chess_snn.errors import ConfigError, CorruptDataError
from chess_snn.nets import make_evaluator, value_target
from chess_snn.training import (
    DatasetShard,
    SupervisedSettings,
    TrainingSettings,
    measure_holdout,
    plan_schedule,
    save_checkpoint,
    step_checkpoints,
    train_supervised,
)

TRAINING = TrainingSettings(batch_size=32, warmup_steps=3, learning_rate=1e-2)


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    parent = tmp_path_factory.mktemp("given") / "pgn-0"
    found = []
    for index, plies in enumerate((24, 30, 36)):
        path = parent / f"shard-{index:06d}"
        manifest = write_shard(path, easy_games(24, plies), {"game": "chess"})
        found.append(DatasetShard(path, manifest.meta["num_positions"]))
    return found


@pytest.fixture(scope="module")
def schedule(shards):
    """Two epochs of two chunks each."""
    room = shards[0].num_positions + shards[1].num_positions
    settings = SupervisedSettings(epochs=2, window_positions=room)
    return plan_schedule(shards, settings, TRAINING, seed=3)


@pytest.fixture(scope="module")
def begin(new_trainer):
    training = SupervisedSettings().applied_to(TRAINING)
    names = ("batch_size", "warmup_steps", "learning_rate", "surprise_share", "root_value_share",
             "presentations")
    return lambda: new_trainer(**{name: getattr(training, name) for name in names})


@pytest.fixture(scope="module")
def finished(game, schedule, begin, tmp_path_factory):
    """A training that came to its end: its trainer, its points and its folder."""
    folder = tmp_path_factory.mktemp("finished")
    return *train_supervised(game, schedule, begin, folder, meta={"of": "ada"}), folder


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of that training's folder."""
    return shutil.copytree(finished[2], tmp_path / "finished")


def test_an_epoch_has_every_shard_once_in_an_order_of_its_own(shards):
    settings = SupervisedSettings(epochs=6, window_positions=10**9)
    schedule = plan_schedule(shards, settings, TRAINING, seed=3)
    assert [chunk.epoch for chunk in schedule.chunks] == list(range(6))
    for chunk in schedule.chunks:
        assert sorted(chunk.shards) == [shard.path for shard in shards]
        assert chunk.num_positions == sum(shard.num_positions for shard in shards)
        assert chunk.num_steps == round(chunk.num_positions / TRAINING.batch_size)
    assert len({chunk.shards for chunk in schedule.chunks}) > 1
    assert schedule == plan_schedule(shards, settings, TRAINING, seed=3)
    assert schedule != plan_schedule(shards, settings, TRAINING, seed=4)


def test_a_portion_is_no_larger_than_asked_but_for_a_single_shard(shards):
    for room in (1, shards[2].num_positions, 10**9):
        schedule = plan_schedule(
            shards, SupervisedSettings(window_positions=room), TRAINING, seed=0
        )
        assert sorted(path for chunk in schedule.chunks for path in chunk.shards) == [
            shard.path for shard in shards]
        assert all(
            chunk.num_positions <= room or len(chunk.shards) == 1 for chunk in schedule.chunks
        )


def test_the_plans_of_all_portions_are_one_line_from_0_to_1(schedule):
    plans = [schedule.plan(index) for index in range(len(schedule.chunks))]
    assert plans[0].progress_first == 0
    assert plans[-1].progress_last == pytest.approx(1)
    for plan, following in itertools.pairwise(plans):
        assert plan.progress_last == following.progress_first


def test_moves_are_learnt(schedule, finished):
    trainer, points, _ = finished
    assert trainer.steps_done == points[-1]["step"] == schedule.num_steps
    assert (points[0]["step"], points[0]["epoch"], points[-1]["epoch"]) == (0, 0, 2)
    # Not every chunk of so few games holds some out.
    measured = [point for point in points if "holdout_policy_loss" in point]
    first, last = measured[0], measured[-1]
    assert last["step"] > first["step"]
    assert last["holdout_policy_loss"] < 0.8 * first["holdout_policy_loss"]
    assert last["holdout_policy_accuracy"] > first["holdout_policy_accuracy"]
    assert points[-1]["policy_loss"] < first["holdout_policy_loss"]


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_weights(
    game, schedule, begin, finished, tmp_path, assert_same_trainers
):
    told = []

    def kill_at(step):
        def tell(done, total):
            told.append((done, total))
            if done == step:
                raise Killed
        return tell

    folder = tmp_path / "killed"
    end = schedule.num_steps
    inside_the_second = schedule.chunks[0].num_steps + 2
    for step in (1, 3, inside_the_second, end - 1, end):
        with pytest.raises(Killed):
            train_supervised(
                game, schedule, begin, folder, checkpoint_s=1e-9, on_progress=kill_at(step)
            )
        assert len(list(folder.glob("*"))) <= 2, "older checkpoints are removed"
    resumed, points = train_supervised(game, schedule, begin, folder)
    assert_same_trainers(resumed, finished[0])
    assert told[-1] == (end, end)
    steps = [point["step"] for point in points]
    assert steps == sorted(set(steps)), "no stretch is told of twice"
    assert supervised_progress(folder) == (end, end)


def test_a_finished_training_is_returned_without_another_step(game, schedule, finished, folder):
    first, points, _ = finished

    def tell(done, total):
        pytest.fail("a step was made")

    again, same = train_supervised(game, schedule, pytest.fail, folder, on_progress=tell)
    assert same == points
    assert again.steps_done == first.steps_done


def test_without_epochs_the_network_stays_as_it_is(game, shards, begin, tmp_path):
    schedule = plan_schedule(shards, SupervisedSettings(epochs=0), TRAINING, seed=0)
    trainer, points = train_supervised(game, schedule, begin, tmp_path)
    assert (trainer.steps_done, points) == (0, [])
    assert supervised_progress(tmp_path) is None


def test_a_damaged_checkpoint_is_named(game, schedule, begin, folder):
    checkpoint = step_checkpoints(folder)[-1]
    (checkpoint / "trainer.json").write_text("{}")
    with pytest.raises(CorruptDataError, match=checkpoint.name):
        train_supervised(game, schedule, begin, folder)


def test_the_newest_two_checkpoints_stay_and_keep_what_is_given(schedule, folder):
    kept = step_checkpoints(folder)
    assert sorted(folder.iterdir()) == kept
    metas = [read_manifest(path).meta for path in kept]
    end = schedule.num_steps
    assert [meta["steps"] for meta in metas] == [end - schedule.chunks[-1].num_steps, end]
    assert [meta["of"] for meta in metas] == ["ada", "ada"]


def test_progress_is_that_of_the_newest_checkpoint_that_can_be_read(schedule, folder):
    older, newer = step_checkpoints(folder)
    (newer / "MANIFEST.json").unlink()
    assert supervised_progress(folder) == (int(older.name[5:]), schedule.num_steps)


def test_a_foreign_checkpoint_is_refused(game, schedule, begin, tmp_path, new_trainer):
    save_checkpoint(tmp_path / "step-000000001", new_trainer(), meta={})
    with pytest.raises(CorruptDataError):
        train_supervised(game, schedule, begin, tmp_path)


def test_held_out_figures_are_those_computed_by_hand(game, tmp_path, new_trainer):
    records = easy_games(24, 24)
    records = replace(
        records, outcomes_white=np.resize(np.array([1, -1, 0], np.int8), 24),
        terminations=np.zeros(24, np.uint8), cut_values_white=np.zeros(24, np.float32),
        values_stm=np.linspace(-1, 1, records.num_positions, dtype=np.float32),
    )
    write_shard(tmp_path / "pgn-0" / "shard-000000", records, {"game": "chess"})
    window = ReplayWindow.load(
        game, [tmp_path / "pgn-0" / "shard-000000"], capacity=10**6, holdout_every=3
    )
    trainer = new_trainer()
    report = measure_holdout(trainer, window)
    (samples,) = window.iterate(10**6, subset="holdout")
    assert report.positions == len(samples) > 50
    legal_actions, num_legal = game.legal_actions(samples.states)
    with make_evaluator(trainer.network, precision="fp32") as evaluator:
        answer = evaluator.evaluate(game.planes(samples.states), legal_actions, num_legal)
    right, loss = 0, 0.0
    for row, action in enumerate(samples.target_actions[:, 0]):
        logits = torch.tensor(answer.legal_logits[row, : num_legal[row]])
        played = legal_actions[row, : num_legal[row]].tolist().index(action)
        right += int(logits.argmax()) == played
        loss -= float(logits.log_softmax(0)[played])
    assert report.policy_accuracy == pytest.approx(right / len(samples))
    assert report.policy_loss == pytest.approx(loss / len(samples), rel=1e-4)
    values, results = answer.value_stm, samples.results_stm
    scores = (results + 1) / 2
    assert report.brier_score == pytest.approx(np.mean(((values + 1) / 2 - scores) ** 2), rel=1e-4)
    decided = np.abs(results) == 1
    assert report.decided_accuracy == pytest.approx(
        np.mean(np.sign(values[decided]) == results[decided])
    )
    share = trainer.settings.root_value_share
    target = (1 - share) * samples.outcomes_stm + share * samples.values_stm
    wdl = torch.tensor(answer.wdl_stm)
    wanted = value_target(game.spec, torch.tensor(target))
    assert report.value_target_loss == pytest.approx(
        float(-(wanted * wdl.log()).sum(dim=1).mean()), rel=1e-4
    )


def test_nothing_held_out_is_no_report(game, endgames, new_trainer):
    assert measure_holdout(new_trainer(), endgames) is None


def test_settings_of_a_campaign_are_turned_to_moves_and_results():
    campaign = replace(TRAINING, surprise_share=0.1)
    applied = SupervisedSettings(learning_rate=0.5).applied_to(campaign)
    assert (applied.root_value_share, applied.surprise_share) == (0.75, 0)
    assert applied.learning_rate == 0.5
    assert SupervisedSettings().applied_to(campaign).learning_rate == campaign.learning_rate


@pytest.mark.parametrize("values", [
    {"epochs": -1}, {"learning_rate": math.nan}, {"window_positions": 0},
    {"checkpoint_minutes": 0.0}, {"digest": "abc"},
])
def test_settings_out_of_range_are_named(values):
    with pytest.raises(ConfigError, match=rf"supervised\.{next(iter(values))}"):
        SupervisedSettings(**values)
