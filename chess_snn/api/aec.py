"""One game behind PettingZoo's interface ``AECEnv``: agents in turns, with a mask of actions.

The library of PettingZoo is an extra; :func:`chess_snn.pettingzoo_env` makes the environment.
"""

from typing import Any, ClassVar, Final

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import AECEnv

from chess_snn.api.environment import Env, make_env
from chess_snn.errors import IllegalMoveError
from chess_snn.types import Json

_AGENTS: Final = {1: ["player_0"], 2: ["player_0", "player_1"]}
"""By the number of players; the first one is White."""


class GameEnv(AECEnv):  # type: ignore[misc]  # Gymnasium's types are not looked at
    """One game; see :func:`chess_snn.pettingzoo_env`.

    The winner of chess gets 1 and the loser -1; the player of 2048 gets the points of each move.
    """

    metadata: ClassVar[Json] = {
        "name": "chess_snn_v0", "render_modes": ["ansi"], "is_parallelizable": False,
    }
    agents: list[str]
    agent_selection: str
    rewards: dict[str, float]
    terminations: dict[str, bool]
    truncations: dict[str, bool]
    _cumulative_rewards: dict[str, float]

    def __init__(self, game: str, seed: int, render_mode: str | None) -> None:
        super().__init__()
        self._game, self._env = game, make_env(game, 1, seed=seed)
        self.render_mode = render_mode
        spec = self._env
        self.possible_agents = list(_AGENTS[2 if game == "chess" else 1])
        shape = (*spec.board_shape, spec.num_planes)
        space = Dict({
            "observation": Box(0, 1, shape, np.uint8),
            "action_mask": Box(0, 1, (spec.num_actions,), np.int8),
        })
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {
            agent: Discrete(spec.num_actions) for agent in self.possible_agents
        }
        self._begin()

    @property
    def env(self) -> Env:
        """The game, with its moves and positions as users of this library see them."""
        return self._env

    def observation_space(self, agent: str) -> Any:
        """Space of the observations of ``agent``, the same object each time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Any:
        """Space of the actions of ``agent``, the same object each time."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: Json | None = None) -> None:
        """Begin a new game, with ``seed`` one that this seed decides."""
        if seed is None:
            self._env.reset()
        else:
            self._env = make_env(self._game, 1, seed=seed)
        self._begin()

    def observe(self, agent: str) -> Json:
        """Planes uint8[H, W, P] of the side to move, and the mask int8[A] of ``agent``."""
        planes_PHW = self._env.observe()[0]
        mask = self._env.legal_mask()[0].astype(np.int8)
        if agent != self.agent_selection:
            mask[:] = 0
        return {"observation": planes_PHW.transpose(1, 2, 0), "action_mask": mask}

    def step(self, action: int | None) -> None:
        """Play ``action`` of the agent whose turn it is; None for one whose game is over.

        Raises:
            IllegalMoveError: the action is not legal.
        """
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        if action is None:
            raise IllegalMoveError(f"{agent} is to move; give one of the actions of its mask")
        done = self._env.step(np.array([action]))
        self._cumulative_rewards[agent] = 0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.rewards[agent] = float(done.rewards[0])
        index = self.agents.index(agent)
        other = self.agents[(index + 1) % len(self.agents)]
        if other != agent:
            self.rewards[other] = -self.rewards[agent]
        self.terminations = dict.fromkeys(self.agents, bool(done.ended[0]))
        self.agent_selection = other
        self._accumulate_rewards()

    def render(self) -> str | None:
        """The position as text, if the mode is ``ansi``."""
        return str(self._env.position(0)) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Do nothing: the game holds no resources."""

    def _begin(self) -> None:
        self.agents = list(self.possible_agents)
        self.agent_selection = self.agents[0]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, Json] = {agent: {} for agent in self.agents}
