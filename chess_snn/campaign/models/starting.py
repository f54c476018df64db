"""A campaign that starts from a network: from which, under which settings, and with which games."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from chess_snn import nets
from chess_snn.campaign.configuration.loading import Setting, load_config
from chess_snn.campaign.configuration.settings import CampaignConfig, NetworkSettings
from chess_snn.campaign.models.model import Model
from chess_snn.campaign.models.references import FetchModel, find_model, is_registered
from chess_snn.campaign.stages.first_generation import (
    commit_first_generation,
    fitted_network,
    is_warm,
)
from chess_snn.campaign.stages.window import window_shards
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.origin import Origin
from chess_snn.data import link_folder, read_manifest
from chess_snn.data.window import INHERITED
from chess_snn.errors import UsageError
from chess_snn.extras import fetch_model
from chess_snn.nets import NetConfig
from chess_snn.types import Json


@dataclass(frozen=True, slots=True)
class Start:
    """A network that a campaign is to start from, loaded and whole."""

    model: Model
    network: nets.Network
    settings: Json
    """`net.…` of the campaign that trained it; without one those that its weights show."""
    origin: Origin

    def load_config(
        self, preset: str | None = None, file: Path | None = None,
        settings: Sequence[Setting] = (), *, over_preset: Sequence[Setting] = (),
    ) -> CampaignConfig:
        """The settings of a new campaign, whose `net.…` are those of the network if none are given.

        Arguments are those of :func:`chess_snn.campaign.configuration.loading.load_config`.

        Raises:
            ConfigError: as there.
            UsageError: the network is of another game or shape than the settings ask for.
        """
        config = load_config(
            preset, file, settings, network=self.settings, over_preset=over_preset
        )
        self.check(config)
        return config

    def check(self, config: CampaignConfig) -> None:
        """See that a campaign under ``config`` can start from this network.

        Its neurons may have other ticks or levels from then on, for these have no weights. It may
        begin to see the rule planes and to read moves from where they go to, and it may grow.

        Raises:
            UsageError: it is of another game or shape.
        """
        wanted, found = config.net.network(), self.network.config
        asked, game = self.origin.reference, self.network.spec.name
        if config.campaign.game != game:
            raise UsageError(
                f"{asked} is a network of {game}, and campaign.game = "
                f'"{config.campaign.game}"; give a network of {config.campaign.game}'
            )
        began_as = replace(
            wanted, ticks=found.ticks, levels=found.levels,
            rule_planes=wanted.rule_planes and found.rule_planes,
            target_readout=wanted.target_readout and found.target_readout,
            blocks=min(wanted.blocks, found.blocks),
            channels=min(wanted.channels, found.channels),
        )
        if began_as != found:
            has, asks_for = _differences(found, wanted)
            raise UsageError(
                f"{asked} is a network with {has}, and the settings ask for {asks_for}; leave "
                "net.… out, or start from a network of that shape"
            )


def find_start(text: str, fetch: FetchModel = fetch_model) -> Start:
    """The network that ``text`` names, to start a campaign from; see :func:`.find_model`.

    Raises:
        CorruptDataError: it is damaged.
        ChessSnnError: as :func:`.find_model`.
    """
    model = find_model(text, fetch)
    if model.in_play:
        raise UsageError(
            f"{text!r} is a way to play a network; leave out what stands behind #, and use --set "
            "instead: net.ticks=…, search.…"
        )
    network = model.load_stored()
    parent, facts = model.campaign, model.facts
    origin = Origin(
        reference=text, weights_digest=nets.network_digest(network), generation=model.generation,
        weights="" if is_registered(text) else str(model.weights.absolute()),
        campaign=str(facts.get("campaign", "")) if parent is None else parent.name,
        campaign_id=str(facts.get("campaign_id", "")) if parent is None else parent.campaign_id,
        folder="" if parent is None else str(parent.path),
    )
    return Start(model, network, _settings_of(network.config, model.config), origin)


def create_campaign(
    path: Path, config: CampaignConfig, start: Start | None = None, *, with_games: bool = False
) -> CampaignFolder:
    """Make a new campaign in ``path``, missing or empty: from nothing, or from a network.

    From a network, ``config`` is one of :meth:`Start.load_config`. ``with_games`` takes along the
    replay window that it was trained on: the first windows of the new campaign hold it too.

    Raises:
        CampaignError: the folder holds something already, or cannot be written.
        UsageError: the network does not fit, or has no games; nothing is made.
        CorruptDataError: a shard is damaged; nothing is made.
    """
    if start is None:
        return CampaignFolder.create(path, config)
    start.check(config)
    shards = _window_of(start) if with_games else []
    games = tuple(f"{INHERITED}{shard.parent.name}/{shard.name}" for shard in shards)
    positions = sum(int(read_manifest(shard).meta["num_positions"]) for shard in shards)

    def fill(folder: CampaignFolder) -> None:
        for shard, name in zip(shards, games, strict=True):
            link_folder(shard, folder.path / "games" / name)
        if not is_warm(folder):  # else it has to learn from the dataset first
            network = fitted_network(start.network, config)
            commit_first_generation(folder, network, {})

    origin = replace(start.origin, games=games, positions=positions)
    return CampaignFolder.create(path, config, origin, fill)


def _window_of(start: Start) -> list[Path]:
    """The shards of the replay window that the network was trained on, oldest first."""
    parent, generation = start.model.campaign, start.model.generation
    if parent is None or generation is None:
        raise UsageError(
            f"{start.origin.reference} is not in the folder of a campaign, so it has no games; "
            "leave out --with-games, or give CAMPAIGN@GENERATION"
        )
    shards = window_shards(parent, generation - 1) if generation else []
    if not shards:
        raise UsageError(
            f"{start.origin.reference} has no games: "
            + ("generation 0 has not learnt from any" if not generation
               else "they were removed by `chess-snn gc`")
            + "; leave out --with-games, or start from another generation"
        )
    return shards


def _settings_of(shape: NetConfig, config: CampaignConfig | None) -> Json:
    """The settings of a network of a campaign, as large as it is now.

    If only its shape is known, how it plays is for the preset.
    """
    if config is not None:
        net = config.net
        if net.growth:
            net = replace(net, size=shape.size, ticks=shape.ticks, growth=())
        return asdict(net)
    known: Json = {"activation": shape.activation, "size": shape.size}
    found, wanted = asdict(NetworkSettings(**known).network()), asdict(shape)
    return known | {name: wanted[name] for name in wanted if wanted[name] != found[name]}


def _differences(a: NetConfig, b: NetConfig) -> tuple[str, str]:
    """The settings in which two shapes differ, as either has them."""
    names = [f.name for f in fields(NetConfig) if f.name not in ("blocks", "channels")]
    names = [name for name in ("size", *names) if getattr(a, name) != getattr(b, name)]
    first, second = (
        ", ".join(f"net.{name} = {getattr(shape, name)}" for name in names) for shape in (a, b)
    )
    return first, second
