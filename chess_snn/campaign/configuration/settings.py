"""The settings of a campaign: those of every component, and the few that are its own."""

from dataclasses import fields, replace
from math import ceil
from typing import Final, Literal

from pydantic import Field

from chess_snn.campaign.configuration.pace import (
    ClusterSettings,
    ExecutionSettings,
)
from chess_snn.data import check_td_lambda
from chess_snn.errors import ConfigError
from chess_snn.evaluation.engines.player import parse_engine
from chess_snn.evaluation.named_players import check_player, make_player
from chess_snn.evaluation.openings import OpeningSource, check_book
from chess_snn.games import GameSpec, get_game
from chess_snn.nets import SIZES, Activation, NetConfig, Precision, net_config
from chess_snn.search import MAX_SIMULATIONS, SearchSettings, check_memory
from chess_snn.self_play import SelfPlaySettings
from chess_snn.settings import settings_class
from chess_snn.training import SupervisedSettings, TrainingSettings

OPENINGS_EACH: Final = 50
"""Openings that one worker plays at a time; a match of more is played in parts."""
_MOST_LADDER_GAMES: Final = 2000
"""Most games of a ladder test: against a single rung they use every opening of the book."""

_SHAPE: Final = tuple(
    field.name for field in fields(NetConfig)
    if field.name not in ("activation", "blocks", "channels", "value_channels", "value_hidden")
)
"""Settings of a network where 0 takes the value of its size."""

PromotionRule = Literal["sprt", "score"]
"""Rule that decides on the champion."""


@settings_class("campaign")
class RunSettings:
    """How long the campaign runs, and from which seed."""

    iterations: int = Field(default=20, ge=1, le=1_000_000)
    """Passes of self-play, training and evaluation; ignored if `hours` is set."""
    hours: float = Field(default=0.0, ge=0, le=100_000)
    """Above 0, no iteration begins after this much running time, and scheduled values follow the
    clock; 0 counts iterations instead."""
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Seed of all random streams: the same seed gives the same games and weights on one kind of
    device."""
    game: str = "chess"
    """The game to learn: `chess` or `2048`."""


@settings_class("net")
class NetworkSettings:
    """Which network learns. A 0 takes the value of `net.size`."""

    size: str = Field(default="tiny", examples=list(SIZES))
    """`tiny` has 3 residual blocks of 32 channels, `small` 6 of 64, `base` 10 of 128, `large` 20 of
    256; others by their numbers, such as `8x96`."""
    growth: tuple[str, ...] = Field(default=(), strict=False)
    """Larger sizes that take the place of `net.size`, each with the share of the campaign after
    which it does: `["small@0.25", "10x128@0.6"]`. A network that grows keeps its answers."""
    activation: Activation = "lif"
    """`lif` spikes once a tick; `ilif` up to `levels` times in its one tick, so that it needs one
    convolution a layer; `relu` is the baseline. Settings of other neurons are ignored."""
    rule_planes: bool = False
    """Whether the network also sees planes that follow from the rules. Chess has 20: the squares
    that each kind of piece attacks, that two pieces attack, and from which a knight, a bishop or a
    rook would attack a king."""
    target_readout: bool = False
    """Whether the policy reads a move of chess from the square that it goes to as well as from the
    one that it leaves."""
    ticks: int = Field(default=0, ge=0, le=64)
    """Spiking time of one evaluation; 0 takes that of `net.size`."""
    levels: int = Field(default=0, ge=0, le=64)
    """Largest number of spikes of an `ilif` neuron; 0 takes 4."""
    decay: float = Field(default=0.0, ge=0, le=1)
    """Share of the membrane potential that is left after one tick; 0 takes 0.5. For neurons that
    keep nothing, set `net.ticks = 1` instead."""
    threshold: float = Field(default=0.0, ge=0, le=100)
    """Membrane potential from which a neuron spikes; 0 takes 0.5."""
    surrogate_alpha: float = Field(default=0.0, ge=0, le=100)
    """Sharpness of the surrogate derivative in training; 0 takes 2."""
    readout_gain: float = Field(default=0.5, ge=0, le=100)
    """Initial scale of policy and values. With a small one an untrained network prefers no legal
    action and no side; with 8 it prefers some actions strongly."""
    precision: Precision = "bf16"
    """Precision of the network in play: `bf16`, `fp32`, or `int8`, which has weights of 8 bits and
    exact sums of spikes, or of values in 8 bits. It is the fastest; on GPUs it needs Triton and at
    most 8 ticks."""

    def __post_init__(self) -> None:
        before, share = self.network(), 0.0  # an unknown size, or ticks that neurons do not have
        for text, (size, after) in zip(self.growth, self._steps(), strict=True):
            wanted = net_config(size)
            is_larger = before.blocks <= wanted.blocks and before.channels <= wanted.channels
            if not (is_larger and before.size != wanted.size and share < after < 1):
                raise ConfigError(
                    f'net.growth: "{text}" must be larger than {before.size}, after a share of the '
                    f"campaign between {share:g} and 1"
                )
            before, share = wanted, after

    def _steps(self) -> list[tuple[str, float]]:
        steps = []
        for text in self.growth:
            size, _, share = text.partition("@")
            try:
                steps.append((size, float(share)))
            except ValueError:
                raise ConfigError(
                    "net.growth has sizes with a share of the campaign, such as small@0.25, got "
                    f'"{text}"'
                ) from None
        return steps

    def at(self, progress: float) -> "NetworkSettings":
        """The settings after the share ``progress`` of the campaign, without further growth."""
        if not self.growth:
            return self
        sizes = [self.size, *(size for size, share in self._steps() if share <= progress)]
        return replace(self, size=sizes[-1], ticks=self.network().ticks, growth=())

    def network(self) -> NetConfig:
        """The network's shape at first: the size's, but for what is set here."""
        config = net_config(self.size).with_activation(self.activation)
        own = {name: getattr(self, name) for name in _SHAPE if getattr(self, name)}
        return replace(config, **own)


@settings_class("evaluation")
class EvaluationSettings:
    """The matches of new generations, in which networks play their best move (temperature 0)."""

    every: int = Field(default=1, ge=1)
    """One of this many generations is evaluated; the others have no score."""
    opponents: tuple[str, ...] = Field(default=("random", "greedy", "minimax:2"), strict=False)
    """Players by name: `random`, `greedy`, `minimax:N`; UCI engines such as `stockfish@1000`; any
    of them with some moves at random, `stockfish:depth=1~75`."""
    num_openings: int = Field(default=20, ge=1, le=100_000)
    """Openings of a match, each played with both colours. In a game of one player: seeds, each
    played by both players."""
    openings: OpeningSource = "book"
    """Openings of matches: `book`, short balanced lines that come with chess-snn, or `random`,
    four random plies. A game of one player has `random` ones, at its start."""
    max_plies: int = Field(default=200, ge=1, le=100_000)
    """Games are truncated after this many plies, and with two players scored as drawn."""
    simulations: int = Field(default=0, ge=0, le=MAX_SIMULATIONS)
    """Simulations of the network per move; with 0 it plays without search."""
    won_positions: int = Field(default=32, ge=1, le=10_000)
    """Simple won positions that a new generation plays out against itself; an alarm reads how many
    it wins. None in a game of one player."""
    ladder_test: bool = False
    """Whether a new generation is also rated on the ladder of players that come with chess-snn. It
    plays against those near its own strength. Without Stockfish only the players that need no
    engine are used."""
    ladder_test_games: int = Field(default=120, ge=2, le=_MOST_LADDER_GAMES)
    """Largest number of games of a ladder test."""
    ladder_test_simulations: int = Field(default=0, ge=0, le=MAX_SIMULATIONS)
    """Simulations of the network per move in a ladder test; 0 takes `evaluation.simulations`.
    Ratings of different campaigns compare only if this is the same: all presets have 16."""
    ladder_test_interval: float = Field(default=150.0, gt=0, le=10_000)
    """Width of the 95 % interval, in Elo points, at which a ladder test ends. The interval is that
    of the distance to the most frequent opponent; a test also ends when all its games are played.
    """
    final_openings: int = Field(default=0, ge=0, le=100_000)
    """Openings of each match at the end of the campaign; 0 plays none. The matches are against
    `random` without search and with it, `greedy`, and the network of a third of the campaign
    earlier."""
    final_simulations: int = Field(default=64, ge=1, le=MAX_SIMULATIONS)
    """Simulations of the networks per move in those matches."""

    def __post_init__(self) -> None:
        if not self.opponents:
            raise ConfigError("evaluation.opponents must name a player; try [\"random\"]")
        if len(set(self.opponents)) != len(self.opponents):
            raise ConfigError(
                f"evaluation.opponents names a player twice: {', '.join(self.opponents)}"
            )

    @property
    def ladder_test_pairs(self) -> int:
        """Openings, each played with both colours, before a ladder test chooses its opponent anew.

        It chooses up to twelve times.
        """
        return ceil(self.ladder_test_games / 24)


@settings_class("promotion")
class PromotionSettings:
    """When an evaluated generation, the candidate, becomes the champion."""

    rule: PromotionRule = "sprt"
    """Promotes a candidate by `sprt`, a match against the champion, or by `score`, its mean score
    over the opponents. With `sprt` a sequential test ends the match, or its openings are played;
    then the candidate is promoted unless all games so far rate it below the champion."""
    elo0: float = Field(default=-75.0, ge=-1000, le=1000)
    """Hypothesis of the test: the candidate is this many Elo points above the champion (below, if
    negative). The match ends early once the games favour one hypothesis clearly."""
    elo1: float = Field(default=75.0, ge=-1000, le=1000)
    """The other hypothesis of the test; above `promotion.elo0`. Half the distance takes four times
    the games."""
    max_openings: int = Field(default=32, ge=1, le=100_000)
    """Largest number of openings, each played with both colours."""
    openings_each: int = Field(default=8, ge=1, le=1000)
    """Openings that one worker plays at a time; the test is computed after each such part."""
    margin: float = Field(default=0.0, ge=-1, le=1)
    """With `score`: a candidate is promoted when its mean score is at least the champion's plus
    this."""

    def __post_init__(self) -> None:
        if self.elo0 >= self.elo1:
            raise ConfigError(
                f"promotion.elo1 must be above promotion.elo0 = {self.elo0:g}, got {self.elo1:g}"
            )


@settings_class("")
class CampaignConfig:
    """Everything a campaign needs to know; frozen into its folder at the start."""

    campaign: RunSettings = Field(default_factory=RunSettings)
    net: NetworkSettings = Field(default_factory=NetworkSettings)
    search: SearchSettings = Field(default_factory=SearchSettings)
    self_play: SelfPlaySettings = Field(default_factory=SelfPlaySettings)
    training: TrainingSettings = Field(default_factory=TrainingSettings)
    supervised: SupervisedSettings = Field(default_factory=SupervisedSettings)
    evaluation: EvaluationSettings = Field(default_factory=EvaluationSettings)
    promotion: PromotionSettings = Field(default_factory=PromotionSettings)
    execution: ExecutionSettings = Field(default_factory=ExecutionSettings)
    cluster: ClusterSettings = Field(default_factory=ClusterSettings)

    def __post_init__(self) -> None:
        game = get_game(self.campaign.game)
        for opponent in self.evaluation.opponents:
            check_player(game, opponent)
        if self.evaluation.openings == "book":
            check_book(game, self.evaluation.num_openings, "evaluation.num_openings")
            check_book(game, self.evaluation.final_openings, "evaluation.final_openings")
            if self.promotion.rule == "sprt":
                check_book(game, self.promotion.max_openings, "promotion.max_openings")
        if self.evaluation.ladder_test and game.spec.name != "chess":
            raise ConfigError(
                f"evaluation.ladder_test needs a ladder, and none is shipped for {game.spec.name}; "
                "set evaluation.ladder_test = false"
            )
        check_td_lambda(game.spec, self.training.td_lambda)
        if game.spec.num_players == 1:
            self._check_one_player(game.spec)
        self._check_teacher()
        self.training.check_network(self.net.network())
        self._check_ranks()
        self._check_tree_memory(game.spec)

    @property
    def ladder_test_simulations(self) -> int:
        """Search budget of the network at each of its moves in a ladder test."""
        return self.evaluation.ladder_test_simulations or self.evaluation.simulations

    def check_labels(self) -> None:
        """See that games without search have a teacher; not when read, for earlier ones had none.

        Raises:
            ConfigError: they have none.
        """
        if self.search.kind == "policy" and not self.self_play.teacher:
            raise ConfigError(
                'search.kind = "policy" plays games without search, which teach nothing unless '
                'self_play.teacher labels them; set it, or search.kind = "gumbel"'
            )

    def find_engines(self) -> None:
        """See that every engine it plays against or learns from is on this machine at the start.

        Raises:
            EngineError: one is not; says what to do.
        """
        game = get_game(self.campaign.game)
        teachers = [self.self_play.teacher] if self.self_play.teacher else []
        for opponent in (*self.evaluation.opponents, *teachers):
            make_player(game, opponent)

    def _check_one_player(self, spec: GameSpec) -> None:
        """Refuse settings that need a second player."""
        for kind in ("practice", "mismatch"):
            for when in ("first", "last"):
                share = getattr(self.self_play, f"{kind}_share_{when}")
                if share:
                    raise ConfigError(
                        f"self_play.{kind}_share_{when} = {share:g} is for games of two players, "
                        f"and {spec.name} has one; set it to 0"
                    )
        if self.supervised.games:
            raise ConfigError(
                f"supervised.games are games of chess, and the campaign learns {spec.name}; leave "
                "them out"
            )

    def _check_teacher(self) -> None:
        if not (teacher := self.self_play.teacher):
            return
        parse_engine(get_game(self.campaign.game), teacher)
        if self.search.kind != "policy":
            raise ConfigError(
                f'self_play.teacher = "{teacher}" labels games that are played without search, and '
                f'search.kind = "{self.search.kind}"; set search.kind = "policy"'
            )

    def _check_ranks(self) -> None:
        training = self.training
        ranks = self.execution.training_ranks  # 0 takes no more than there are micro-batches
        if ranks > training.num_micro_batches:
            raise ConfigError(
                f"execution.training_ranks = {ranks}, and a step has {training.num_micro_batches} "
                f"micro-batches (training.batch_size = {training.batch_size}, training.micro_batch "
                f"= {training.micro_batch}); set training.micro_batch to "
                f"{max(2, training.batch_size // ranks)} or less, or use fewer ranks"
            )

    def _check_tree_memory(self, spec: GameSpec) -> None:
        """Now, rather than in a worker at the end of the campaign."""
        matches = self.evaluation
        uses = [(matches.simulations, 2 * min(matches.num_openings, OPENINGS_EACH))]
        if matches.ladder_test:
            uses.append((self.ladder_test_simulations, 2 * matches.ladder_test_pairs))
        if matches.final_openings:
            games = 2 * min(matches.final_openings, OPENINGS_EACH)
            uses.append((matches.final_simulations, games))
        if self.promotion.rule == "sprt":
            uses.append((matches.simulations, 2 * self.promotion.openings_each))
        limit = self.search.memory_mib
        for simulations, num_games in uses:
            if simulations:
                check_memory(spec, simulations, num_games, limit, self.search.num_searches(spec))
        if self.search.kind != "policy":
            most = max(self.search.simulations_first, self.search.simulations_last)
            check_memory(spec, most, self.self_play.concurrent_games, limit)
