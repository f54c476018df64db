"""The networks that a worker keeps, and the groups of games that ask them."""

import pytest
from small_campaigns import make_networks

from chess_snn.campaign import load_config
from chess_snn.campaign.stages import networks
from chess_snn.campaign.stages.networks import evaluator_of, self_play_searches
from chess_snn.errors import CorruptDataError
from chess_snn.games import get_game
from chess_snn.nets import make_evaluator
from chess_snn.training import load_weights_alone


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return make_networks(tmp_path_factory.mktemp("networks") / "campaign", generations=range(6))


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch):
    monkeypatch.setattr(networks, "_kept", {})


def answer_of(evaluator):
    game = get_game("chess")
    batch = game.allocate(4)
    return evaluator.evaluate(
        game.planes(batch.state), batch.legal_actions, batch.num_legal
    ).legal_logits


def fresh_answer(folder, generation):
    network = load_weights_alone(folder.checkpoint(generation))
    with make_evaluator(network, precision=folder.config.net.precision) as evaluator:
        return answer_of(evaluator)


def test_a_worker_keeps_three_networks_and_closes_the_one_longest_unused(trained):
    first = evaluator_of(trained, 0)
    others = [evaluator_of(trained, generation) for generation in (1, 2)]
    assert evaluator_of(trained, 0) is first
    newest = evaluator_of(trained, 3)
    assert len({first, newest, *others}) == 4
    with pytest.raises(RuntimeError):
        answer_of(others[0])
    for generation, evaluator in ((0, first), (2, others[1]), (3, newest)):
        assert evaluator_of(trained, generation) is evaluator
        assert (answer_of(evaluator) == fresh_answer(trained, generation)).all()


def test_a_network_that_cannot_be_read_closes_no_other(trained, monkeypatch):
    kept = [evaluator_of(trained, generation) for generation in (0, 1, 2)]

    def damaged(checkpoint):
        raise CorruptDataError(f"{checkpoint} is damaged")

    with monkeypatch.context() as patch:
        patch.setattr(networks.training, "load_weights_alone", damaged)
        with pytest.raises(CorruptDataError):
            evaluator_of(trained, 3)
    assert [evaluator_of(trained, generation) for generation in (0, 1, 2)] == kept
    assert (answer_of(kept[0]) == fresh_answer(trained, 0)).all()


def test_an_evaluator_that_could_not_be_made_is_not_kept(trained, monkeypatch):
    kept = [evaluator_of(trained, generation) for generation in (0, 1, 2)]

    def interrupted(_network, *, instead_of, **_options):
        instead_of.close()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(networks.nets, "make_evaluator", interrupted)
        with pytest.raises(KeyboardInterrupt):
            evaluator_of(trained, 3)
    again = evaluator_of(trained, 0)
    assert again is not kept[0]
    assert (answer_of(again) == fresh_answer(trained, 0)).all()


@pytest.mark.parametrize(("device", "threads", "games", "groups"), [
    ("cpu", 1, 9, 1), ("cpu", 2, 9, 2), ("cpu", 8, 9, 2),
    ("cuda:0", 1, 9, 2), ("cuda:0", 8, 2048, 4), ("cuda:0", 8, 2049, 5), ("cuda:0", 4, 8192, 4),
    ("cuda:0", 16, 65536, 8),
])
def test_groups_keep_a_device_busy(trained, device, threads, games, groups):
    searches = self_play_searches(
        load_config("gpu"), evaluator_of(trained, 0), device, threads, simulations=0,
        num_games=games,
    )
    assert len(searches) == groups
