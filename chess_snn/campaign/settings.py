"""The settings of a campaign: those of every component, and the few that are its own."""

from dataclasses import dataclass, field

from chess_snn.config import check_choice, check_range
from chess_snn.errors import ConfigError
from chess_snn.evaluation import make_player
from chess_snn.games import get_game
from chess_snn.nets import NetConfig, Precision, net_config
from chess_snn.self_play import SelfPlaySettings
from chess_snn.training import TrainingSettings


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How long the campaign runs, and from which seed."""

    iterations: int = 20
    """Passes of self-play, training and evaluation."""
    seed: int = 0
    """Everything random derives from it: the same seed gives the same games and weights on one
    kind of device."""
    game: str = "chess"
    """The game to learn."""

    def __post_init__(self) -> None:
        check_range("campaign.iterations", self.iterations, ge=1, le=1_000_000)
        check_range("campaign.seed", self.seed, ge=0, le=2**63 - 1)


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Which network learns."""

    size: str = "tiny"
    """`tiny`, `small`, `base` or `large`."""
    activation: str = "lif"
    """`lif` spikes; `relu` is the ordinary twin."""
    ticks: int = 0
    """Spiking time of one evaluation; 0 takes the size's own."""
    precision: Precision = "bf16"
    """Precision of the network in play, part of its identity: `bf16` or `fp32`."""

    def __post_init__(self) -> None:
        check_range("net.ticks", self.ticks, ge=0, le=64)
        check_choice("net.activation", self.activation, ("lif", "relu"))
        check_choice("net.precision", self.precision, ("bf16", "fp32"))
        self.network()  # an unknown size, or ticks that the activation does not have

    def network(self) -> NetConfig:
        """The network's shape."""
        config = net_config(self.size)
        if self.activation == "relu":
            config = config.twin()
        if self.ticks == 0:
            return config
        return net_config(self.size, activation=self.activation, ticks=self.ticks)


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """The matches each new generation plays."""

    opponents: tuple[str, ...] = ("random", "greedy", "minimax:2")
    """Players by name: `random`, `greedy`, `minimax:N`."""
    num_openings: int = 20
    """Openings a match; each is played with both colours."""
    opening_plies: int = 4
    """Random plies of an opening."""
    max_plies: int = 200
    """Games are cut after this many plies and scored as drawn."""

    def __post_init__(self) -> None:
        check_range("evaluation.num_openings", self.num_openings, ge=1, le=100_000)
        check_range("evaluation.opening_plies", self.opening_plies, ge=0, le=100)
        check_range("evaluation.max_plies", self.max_plies, ge=1, le=10_000)
        if not self.opponents:
            raise ConfigError("evaluation.opponents must name a player; try [\"random\"]")
        if len(set(self.opponents)) != len(self.opponents):
            raise ConfigError(
                f"evaluation.opponents names a player twice: {', '.join(self.opponents)}"
            )


@dataclass(frozen=True, slots=True)
class PromotionSettings:
    """When a candidate becomes the champion. Self-play always uses the newest network."""

    margin: float = 0.0
    """A candidate is promoted when its mean score over the opponents is at least the champion's
    plus this."""

    def __post_init__(self) -> None:
        check_range("promotion.margin", self.margin, ge=-1, le=1)


@dataclass(frozen=True, slots=True)
class ExecutionSettings:
    """Where the work is done; it changes the pace, never the result."""

    workers: int = 0
    """Worker processes; 0 starts one a core, and no more than an iteration has shards."""
    retries: int = 2
    """How often a failed task is tried again. A killed worker's task is redone in any case."""

    def __post_init__(self) -> None:
        check_range("execution.workers", self.workers, ge=0, le=1024)
        check_range("execution.retries", self.retries, ge=0, le=100)


@dataclass(frozen=True, slots=True)
class CampaignConfig:
    """Everything a campaign needs to know; frozen into its folder at the start."""

    campaign: RunSettings = field(default_factory=RunSettings)
    net: NetworkSettings = field(default_factory=NetworkSettings)
    self_play: SelfPlaySettings = field(default_factory=SelfPlaySettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    promotion: PromotionSettings = field(default_factory=PromotionSettings)
    execution: ExecutionSettings = field(default_factory=ExecutionSettings)

    def __post_init__(self) -> None:
        game = get_game(self.campaign.game)
        for opponent in self.evaluation.opponents:
            make_player(game, opponent)
