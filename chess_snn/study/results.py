"""The results of a study, and all of them as one JSON object."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from chess_snn.campaign.models.model import Model
from chess_snn.campaign.stages.training_alone import points_of
from chess_snn.evaluation.comparison import compare, elo_json
from chess_snn.evaluation.ladder.adaptive import SCALE, LadderRating
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.known import APPROXIMATE_ELO
from chess_snn.study.cost import ENERGY_MODELS
from chess_snn.study.plan import StudyPlan
from chess_snn.study.variants import Variant
from chess_snn.types import Json

TIME: Final = (
    "measured: wall time of games against itself, one game at a time, median over games"
)
_LOSSES: Final = {
    "policy_loss": "holdout_policy_loss", "value_loss": "holdout_value_target_loss",
    "policy_accuracy": "holdout_policy_accuracy", "brier_score": "holdout_brier_score",
    "training_loss": "total_loss", "training_samples_per_s": "samples_per_s", "steps": "step",
}
"""Figures of training, by the names of :data:`chess_snn.training.Points`."""
_MATCH: Final = ("num_games", "wins", "draws", "losses", "score", "score_low", "score_high")


@dataclass(frozen=True, slots=True)
class Part:
    """One network with one budget."""

    variant: Variant
    model: Model
    is_equal_time: bool
    """Whether its moves take as long as those of the first variant with the largest budget."""
    is_budget: bool
    """Whether the budget was asked for."""
    cost: Json
    """See :func:`chess_snn.study.cost.cost_facts`, and the seconds of a move and an evaluation."""
    played: Mapping[str, Sequence[MatchResult]]
    """Its games on the ladder, by opponent."""


@dataclass(frozen=True, slots=True)
class HeadToHead:
    """A match of a variant against the first one."""

    variant: Variant
    simulations: int
    first_simulations: int
    is_equal_time: bool
    is_budget: bool
    """Whether both have the same budget, one that was asked for."""
    result: MatchResult


@dataclass(frozen=True, slots=True)
class StudyResults:
    """All that a study found."""

    plan: StudyPlan
    ladder: Ladder
    parts: tuple[Part, ...]
    ratings: tuple[LadderRating, ...]
    """Ratings of ``parts``, in their order, fitted together."""
    matches: tuple[HeadToHead, ...]

    def losses(self, variant: Variant) -> dict[str, float]:
        """The last figures of its training; held-out ones begin with ``holdout_``."""
        return points_of(self.plan.network(variant))[-1]


def results_json(results: StudyResults) -> Json:
    """Everything that a study found.

    ``networks`` has one entry a variant, ``rows`` one a variant and budget, ``matches`` one a match
    against the first variant. Energies are pJ, by both models; they are not measured.
    """
    plan = results.plan
    return _plan(plan) | {
        "scale": SCALE, "time": TIME,
        "energy_models": ENERGY_MODELS,
        "ladder": {
            "date": results.ladder.origin.get("date"), "engine": results.ladder.engine,
            "approximate_elo": APPROXIMATE_ELO,
        },
        "networks": [_network(results, variant) for variant in plan.variants],
        "rows": list(_rows(results)),
        "matches": [_match(each, plan.variants[0]) for each in results.matches],
    }


def _plan(plan: StudyPlan) -> Json:
    """The request, with the overrides of each variant, and what was fixed at the start."""
    return plan.facts | {
        "request": asdict(replace(plan.request, variants=(), games=())) | {
            "games": [str(path) for path in plan.request.games],
            "variants": {each.name: list(each.overrides) for each in plan.variants},
        },
    }


def _network(results: StudyResults, variant: Variant) -> Json:
    """The figures of the part with the largest budget that was asked for."""
    shape = variant.config.net.network()
    figures = results.losses(variant)
    part = max(
        (part for part in results.parts if part.variant is variant and part.is_budget),
        key=lambda part: part.model.simulations,
    )
    return {
        "name": variant.name, "overrides": list(variant.overrides),
        "neurons": neurons_text(part.cost), "size": shape.size,
        "precision": variant.config.net.precision,
        "losses": {name: figures.get(figure) for name, figure in _LOSSES.items()},
        "cost": part.cost,
    }


def neurons_text(cost: Json) -> str:
    """``lif T=4`` with its ticks, ``ilif D=4`` with its levels, or ``relu``."""
    if cost["activation"] == "relu":
        return "relu"
    letter = "T" if cost["activation"] == "lif" else "D"
    return f"{cost['activation']} {letter}={cost['virtual_ticks']}"


def _rows(results: StudyResults) -> Iterator[Json]:
    for part, rated in zip(results.parts, results.ratings, strict=True):
        cost, rating = part.cost, rated.to_json()
        yield {
            "variant": part.variant.name, "simulations": part.model.simulations,
            "is_equal_time": part.is_equal_time, "is_budget": part.is_budget,
            "elo": rating["elo"], "elo_low": rating["elo_low"], "elo_high": rating["elo_high"],
            "rating_games": rating["num_games"], "approximate": rating["approximate"],
            "opponents": rating["opponents"],
            "spikes_per_evaluation": cost["counts"]["position"]["active"],
            "evaluations_per_move": cost["evaluations"]["move"],
            "ms_per_move_measured": 1000 * cost["seconds"]["move"],
            "ms_per_move_least": 1000 * cost["seconds"]["move_least"],
            "ms_per_move_most": 1000 * cost["seconds"]["move_most"],
            "ms_per_evaluation_measured": 1000 * cost["seconds"]["evaluation"],
        } | {
            f"{model}_model_pj": {
                unit: _executions(cost, part, model, unit) for unit in ("position", "move")
            }
            for model in ENERGY_MODELS
        }


def _executions(cost: Json, part: Part, model: str, unit: str) -> Json:
    """Picojoules by the way in which the network is executed.

    A spiking network spikes. A baseline skips its zeros in 8 bits, or is dense in int8 or float32.
    """
    found = cost["energy"][model]["of"]
    own = list(found) if not part.variant.config.net.network().is_spiking else ["spiking"]
    return {name: found[name][f"{unit}_pj"] for name in own}


def _match(match: HeadToHead, first: Variant) -> Json:
    summary = match.result.summary()
    return {
        "variant": match.variant.name, "simulations": match.simulations,
        "against": first.name, "against_simulations": match.first_simulations,
        "is_equal_time": match.is_equal_time, "is_budget": match.is_budget,
        **{name: summary[name] for name in _MATCH}, "truncated": match.result.truncated,
        "elo": elo_json(match.result),
        "likelihood_of_superiority": compare(match.result).superiority,
    }
