"""Both tree searches again, the slow way: objects, recursion, Python floats, one game at a time.

Written from the papers' equations, not from the kernels; nodes play the game's moves one after the
other, so repetition and every other rule come out as in a real game.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from chess_snn.games.base import ValueKind
from chess_snn.rng import random_unit, random_word
from chess_snn.search.descent import UNVISITED_REDUCTION, VISIT_OFFSET


@dataclass
class Node:
    game: object  # a GameBatch of one
    is_chance: bool = False
    reward: float = 0.0
    value: float = 0.0
    prior: list = field(default_factory=list)
    network_prior: list = field(default_factory=list)
    visits: list = field(default_factory=list)
    sums: list = field(default_factory=list)
    children: dict = field(default_factory=dict)

    def q(self, j):
        return self.sums[j] / self.visits[j]


class ReferenceSearch:
    def __init__(self, game, evaluator, settings, simulations):
        self.game, self.evaluator = game, evaluator
        self.settings, self.simulations = settings, simulations
        self.means = []  # the root's value, and of decisions' edges after each visit

    def search(self, batch, key, ply, temperature):
        """The searched root of one position, a batch of one, and the index of the chosen action."""
        self.means.clear()
        root = self._evaluate(Node(batch))
        self.means.append(root.value)
        root.network_prior = root.prior
        win = self._winning_index(batch)
        if win is not None:
            root.prior = [1.0 if j == win else 1e-6 * p for j, p in enumerate(root.prior)]
        if self.settings.kind == "gumbel":
            noise = self._gumbel(key, ply, len(root.prior), temperature)
            plan = self._plan(len(root.prior))
            for visits in plan:
                self._simulate(root, self._best(root, noise, visits))
            return root, self._best(root, noise, max(root.visits))
        for _ in range(self.simulations):
            self._simulate(root, self._puct(root))
        most = max(root.visits)
        return root, max(
            (j for j in range(len(root.prior)) if root.visits[j] == most),
            key=lambda j: root.prior[j],
        )

    def improved_policy(self, node):
        """softmax(logits + sigma(completed Q))."""
        mixed, scale = self._mixed(node), self._scale(node)
        logits = [
            math.log(p) + scale * (node.q(j) if node.visits[j] else mixed)
            for j, p in enumerate(node.prior)
        ]
        peak = max(logits)
        weights = [math.exp(logit - peak) for logit in logits]
        return [weight / sum(weights) for weight in weights]

    def improved_value(self, node):
        mixed = self._mixed(node)
        return sum(
            p * (node.q(j) if node.visits[j] else mixed)
            for j, p in enumerate(self.improved_policy(node))
        )

    def _simulate(self, node, j):
        """Take edge j of ``node``; returns the value for the player who moves there."""
        if j not in node.children:
            child = node.children[j] = self._step(node, j)
        else:
            child = node.children[j]
            if child.prior:
                child_value = self._simulate(child, self._choose(child))
                return self._record(node, j, child, child_value)
        return self._record(node, j, child, child.value)

    def _record(self, node, j, child, child_value):
        sign, value = self.game.spec.value_sign, child_value
        if not node.is_chance:
            value = child.reward + self.settings.discount * sign * child_value
        node.visits[j] += 1
        node.sums[j] += value
        if not node.is_chance:
            self.means.append(node.q(j))
        return value

    def _choose(self, node):
        if node.is_chance:
            return self._most_due(node)
        is_puct = "puct" in (self.settings.kind, self.settings.below_root)
        return self._puct(node) if is_puct else self._most_behind(node)

    def _most_due(self, node):
        """Rounded to single precision: 0.9 / 9 and 0.1 are as good as equal."""
        due = [
            np.float32(p) / np.float32(1 + n)
            for p, n in zip(node.prior, node.visits, strict=True)
        ]
        return due.index(max(due))

    def _step(self, node, j):
        game = node.game.take(np.zeros(1, np.int64))
        self.game.step(game, node.game.legal_actions[:, j].copy())
        child = Node(game, reward=float(game.reward[0]))
        if self.game.spec.is_stochastic and (shares := self._event_shares(game)):
            child.is_chance = True
            self._evaluate(child)
            child.prior = shares
            return child
        win = self._winning_index(game)
        if win is not None:
            game.legal_actions[0, 0], game.num_legal[0] = game.legal_actions[0, win], 1
            child.value, child.prior, child.visits, child.sums = 1.0, [1.0], [0], [0.0]
            return child
        return self._evaluate(child) if game.num_legal[0] else child

    def _event_shares(self, game):
        """Shares of events after an afterstate, whose list begins where its hash says."""
        count = int(game.num_legal[0])
        shares = self.game.event_probabilities(game.state)[0, :count].tolist()
        if not any(shares):
            return []
        word = np.uint64(0)
        for state_word in game.state[0]:
            word = np.uint64(random_word(word, state_word))
        start = int(word) % count
        game.legal_actions[0, :count] = np.roll(game.legal_actions[0, :count], -start)
        return shares[start:] + shares[:start]

    def _winning_index(self, game):
        """The first action that wins at once, by playing all of them."""
        if not self.settings.finds_wins or self.game.spec.value_kind is not ValueKind.WDL:
            return None
        for j in range(game.num_legal[0]):
            tried = game.take(np.zeros(1, np.int64))
            self.game.step(tried, game.legal_actions[:, j].copy())
            if tried.reward[0] > 0:
                return j
        return None

    def _evaluate(self, node):
        game = node.game
        answer = self.evaluator.evaluate(
            self.game.planes(game.state), game.legal_actions,
            np.zeros(1, np.int32) if node.is_chance else game.num_legal,
        )
        node.value = float(answer.value_stm[0])
        count = int(game.num_legal[0])
        node.visits, node.sums = [0] * count, [0.0] * count
        if not node.is_chance:
            logits = answer.legal_logits[0, :count].astype(float)
            weights = np.exp(logits - logits.max())
            node.prior = list(weights / weights.sum())
        return node

    def _mixed(self, node):
        visited = [j for j, n in enumerate(node.visits) if n]
        if not visited:
            return node.value
        weighted = sum(node.prior[j] * node.q(j) for j in visited)
        mean = weighted / sum(node.prior[j] for j in visited)
        total = sum(node.visits)
        return (node.value + total * mean) / (1 + total)

    def _scale(self, node):
        factor = (VISIT_OFFSET + max(node.visits)) * self.settings.q_scale
        return factor * self._stretch()

    def _stretch(self):
        """Values met in the tree to [0, 1], but for where they begin."""
        if self.game.spec.value_kind is ValueKind.WDL or not any(self.means):
            return 1.0
        low, high = min(self.means), max(self.means)
        return 1 / max(high - low, 0.01 * max(abs(low), abs(high)))

    def _most_behind(self, node):
        policy, total = self.improved_policy(node), sum(node.visits)
        lag = [p - n / (1 + total) for p, n in zip(policy, node.visits, strict=True)]
        return lag.index(max(lag))

    def _best(self, root, noise, wanted):
        scale = self._scale(root)
        score = {
            j: noise[j] + math.log(p) + (scale * root.q(j) if wanted else 0.0)
            for j, p in enumerate(root.prior)
            if root.visits[j] == wanted
        }
        return max(score, key=score.get)

    def _puct(self, node):
        total = sum(node.visits)
        stretch = self._stretch()
        value = stretch * (node.value + sum(node.sums)) / (1 + total)
        seen = sum(p for p, n in zip(node.prior, node.visits, strict=True) if n)
        unvisited = value - float(UNVISITED_REDUCTION) * math.sqrt(seen)
        score = [
            (stretch * node.q(j) if node.visits[j] else unvisited)
            + self.settings.exploration * p * math.sqrt(1 + total) / (1 + node.visits[j])
            for j, p in enumerate(node.prior)
        ]
        return score.index(max(score))

    def _plan(self, count):
        """Plan no more rounds, in a game of wins, than with half of the actions or more."""
        considered = max(self.settings.considered_actions, self.simulations // 8)
        plan = self._halving(min(count, considered))
        if self.game.spec.value_kind is not ValueKind.WDL:
            return plan
        most = max(max(self._halving(n)) for n in range(considered // 2 or 1, considered + 1))
        return [visits for visits in plan if visits <= most]

    def _halving(self, survivors):
        """Sequential halving by hand: rounds over survivors, the number of which halves."""
        if survivors == 1:
            return list(range(self.simulations))
        phases = math.ceil(math.log2(survivors))
        plan, done = [], 0
        while len(plan) < self.simulations:
            for _ in range(max(1, self.simulations // (phases * survivors))):
                plan.extend([done] * survivors)
                done += 1
            survivors = max(2, survivors // 2)
        return plan[: self.simulations]

    def _gumbel(self, key, ply, count, temperature):
        stream = np.uint64(random_word(np.uint64(key), np.uint64(ply)))
        return [
            -math.log(-math.log(random_unit(stream, np.uint64(j)))) * temperature
            for j in range(count)
        ]
