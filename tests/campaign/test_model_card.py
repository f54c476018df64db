"""What is told of a network to those who find it alone."""

import small_campaigns as made

from chess_snn.campaign.models.versions import model_card, version_of


def card_of(folder):
    made.finish(folder, 0)
    return model_card(version_of(folder, 1))


def test_a_network_that_began_with_given_games_is_said_to_know_only_its_own_bug(tmp_path):
    card = card_of(made.make_campaign(
        tmp_path / "warm", 'supervised.games="/imports/masters"', 'supervised.digest="0123abcd"'
    ))
    assert "trained by chess-snn from a dataset, and then from games with itself." in card
    assert "| pretraining dataset | masters (digest 0123abcd), before the first iteration |" in card


def test_a_network_that_began_untrained_has_games_with_itself_alone(tmp_path):
    games = ('supervised.games="/imports/masters"', 'supervised.digest="0123"')
    for name, changes in (("cold", ()), ("no epochs", (*games, "supervised.epochs=0"))):
        card = card_of(made.make_campaign(tmp_path / name, *changes))
        assert "trained by chess-snn from games with itself." in card
        assert "pretraining dataset" not in card
