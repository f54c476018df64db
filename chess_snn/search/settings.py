"""The settings of search, and the searches that they make."""

from math import isqrt
from typing import Final, Literal

from pydantic import Field

from chess_snn.games.base import Game, GameSpec, ValueKind
from chess_snn.known import MAX_SIMULATIONS
from chess_snn.nets.evaluator import Evaluator
from chess_snn.search.base import PolicySearch, Search
from chess_snn.search.descent import GUMBEL_RULE, PUCT_RULE, Rule
from chess_snn.search.gumbel import GumbelRoot
from chess_snn.search.puct import PuctRoot
from chess_snn.search.tree_search import RootRule, TreeSearch
from chess_snn.settings import check_range, settings_class

SearchKind = Literal["gumbel", "puct", "policy"]
EdgeRule = Literal["gumbel", "puct"]
RootValue = Literal["search", "network"]

_SEARCHES_KEPT: Final = 3
"""Room of a kept tree: what two searches found may be in it when the next one begins."""


@settings_class("search")
class SearchSettings:
    """How an action is chosen with the network, in self-play and in matches."""

    kind: SearchKind = "gumbel"
    """`gumbel` (Gumbel AlphaZero) learns from few simulations; `puct` needs hundreds; `policy`
    evaluates the network once, without a tree, and needs `self_play.teacher` to learn."""
    below_root: EdgeRule = "gumbel"
    """Gumbel: how actions are chosen below the root: `gumbel` by the improved policy, `puct` by
    value and prior, which suits a network that had a teacher."""
    simulations_first: int = Field(default=16, ge=1, le=MAX_SIMULATIONS)
    """Simulations per position at the start of the campaign; in chess, Gumbel makes fewer where few
    actions are legal."""
    simulations_last: int = Field(default=32, ge=1, le=MAX_SIMULATIONS)
    """The same at its end; it changes linearly in between."""
    considered_actions: int = Field(default=16, ge=2, le=1024)
    """Gumbel: number of root actions that sequential halving starts from in self-play. Many tell
    the policy target more; it is an eighth of the simulations if that is more."""
    considered_in_play: int = Field(default=0, ge=0, le=1024)
    """Gumbel: the same in matches and analyses. With 0, games of two players take the square root
    of the simulations: the replies to a few actions tell more than one look at many. Games of one
    player take as many as self-play."""
    q_scale: float = Field(default=1.0, gt=0, le=100)
    """Gumbel: how much a better value changes the policy; c_scale of Danihelka et al. 2022, for
    values in [-1, 1]. In games with points the values of a tree are scaled to [0, 1] first; mctx
    then uses 0.1."""
    discount: float = Field(default=0.998, gt=0, le=1)
    """Value of a win one ply later, as a share of a win now; below 1 a faster mate is better."""
    root_value: RootValue = "search"
    """Value that self-play stores for a position: `search`, the result of the search, or
    `network`, the network's answer before it. The best of a few noisy values is too high; in
    games of points, whose targets are made of stored values, that error would grow."""
    finds_wins: bool = True
    """Whether a position that can be won at once (chess: mate in one) counts as won without an
    evaluation by the network."""
    exploration: float = Field(default=1.5, gt=0, le=100)
    """PUCT: weight of the prior against the value (for its range see `search.q_scale`)."""
    noise_alpha: float = Field(default=0.3, gt=0, le=100)
    """PUCT: concentration of the Dirichlet noise on the root's prior."""
    noise_share: float = Field(default=0.25, ge=0, le=1)
    """PUCT: share of that noise; there is none at temperature 0."""
    keeps_trees: bool = True
    """PUCT, in matches of two players: whether a move's search goes on with what the last one found
    below the two moves played since. It still gets all its simulations."""
    memory_mib: int = Field(default=4096, ge=1)
    """Largest memory of the trees of one search, in MiB; more is an error before it starts."""

    def rule(self) -> Rule:
        """How trees choose edges below the root."""
        return Rule(
            kind=PUCT_RULE if "puct" in (self.kind, self.below_root) else GUMBEL_RULE,
            q_scale=self.q_scale, exploration=self.exploration,
        )

    def num_considered(self, simulations: int, *, in_play: bool, num_players: int) -> int:
        """Gumbel: root actions that a search of ``simulations`` starts from."""
        if in_play and self.considered_in_play:
            return self.considered_in_play
        if in_play and num_players > 1:
            return max(2, isqrt(simulations))
        return max(self.considered_actions, simulations // 8)

    def num_searches(self, spec: GameSpec) -> int:
        """Searches whose simulations a tree holds in a match; 1 where none is kept."""
        is_kept = self.keeps_trees and self.kind == "puct"
        return _SEARCHES_KEPT if is_kept and spec.num_players == 2 and not spec.is_stochastic else 1

    def simulations(self, progress: float) -> int:
        """Simulations a position when ``progress`` in [0, 1] of the campaign is done."""
        first, last = self.simulations_first, self.simulations_last
        return round(first + (last - first) * progress)


def make_search(
    game: Game, evaluator: Evaluator, settings: SearchSettings, *, simulations: int, num_games: int,
    in_play: bool = False, keeps_trees: bool = False,
) -> Search:
    """The search that ``settings`` describe.

    Args:
        game: to be searched.
        evaluator: the network.
        settings: of the search.
        simulations: a position; 0 asks the network once and grows no tree.
        num_games: the largest batch it will be given.
        in_play: whether it considers the actions of matches and analyses, not those of self-play,
            and has a tree even if ``kind = "policy"``; that is a Gumbel tree.
        keeps_trees: whether it follows games from move to move, where the settings say so.

    Raises:
        ConfigError: the simulations are out of range or need more memory than the settings allow.
    """
    check_range("simulations", simulations, ge=0, le=MAX_SIMULATIONS)
    if simulations == 0 or (settings.kind == "policy" and not in_play):
        return PolicySearch(game, evaluator)
    rule = settings.rule()
    root: RootRule
    if settings.kind == "puct":
        root = PuctRoot(settings.noise_alpha, settings.noise_share)
    else:
        considered = settings.num_considered(
            simulations, in_play=in_play, num_players=game.spec.num_players
        )
        considered = min(considered, game.spec.max_legal)
        in_rounds = game.spec.value_kind is ValueKind.WDL
        root = GumbelRoot(rule, considered, simulations, num_games, waves_are_rounds=in_rounds)
    return TreeSearch(
        game, evaluator, rule, root, simulations=simulations, num_games=num_games,
        discount=settings.discount, memory_mib=settings.memory_mib,
        finds_wins=settings.finds_wins, reports_network=settings.root_value == "network",
        num_searches=settings.num_searches(game.spec) if keeps_trees else 1,
    )
