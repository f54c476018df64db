"""Networks in all the places where a command may find one."""

from pathlib import Path

from chess_snn.campaign import CampaignFolder, load_config
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Network, build_network, save_network
from chess_snn.training import Trainer, TrainingSettings, save_checkpoint

SETTINGS = ("search.kind=puct", "search.exploration=2.5", "net.precision=fp32")


def small_network(seed: int, game: str = "chess") -> Network:
    return build_network(get_game(game).spec, NetConfig(blocks=1, channels=8), seed)


def make_campaign(path: Path, generations: tuple[int, ...]) -> CampaignFolder:
    folder = CampaignFolder.create(path, load_config(settings=SETTINGS))
    for generation in generations:
        trainer = Trainer(
            get_game("chess"), small_network(generation), TrainingSettings(), seed=generation
        )
        save_checkpoint(folder.checkpoint(generation), trainer, meta={})
    return folder


def make_weights(path: Path, seed: int = 9, game: str = "chess") -> Path:
    save_network(path, small_network(seed, game))
    return path
