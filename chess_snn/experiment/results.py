"""The results of an experiment as one JSON object, and the columns of its tables."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from chess_snn.campaign.models.model import Model
from chess_snn.campaign.viewing.lines import joules_text, si_text
from chess_snn.data import read_json, write_json
from chess_snn.errors import UsageError
from chess_snn.evaluation.comparison import elo_json
from chess_snn.evaluation.ladder.adaptive import SCALE, LadderRating, rate_on_ladder
from chess_snn.evaluation.scores import elo_difference
from chess_snn.experiment.cost import PJ_PER_J, TWO_PLIES
from chess_snn.experiment.judging import (
    FILE,
    RESULTS,
    ExperimentRun,
    HeadToHead,
    Part,
    Question,
)
from chess_snn.experiment.tuning import Tuning
from chess_snn.experiment.verdict import Verdict
from chess_snn.known import APPROXIMATE_ELO
from chess_snn.nets.analysis.energy import CHANGES, ENERGY_MODELS, SPIKING
from chess_snn.types import Json

TIME: Final = (
    "measured: wall time of games against itself, one game at a time, median over games"
)
_MATCH: Final = ("num_games", "wins", "draws", "losses", "truncated", "score", "score_low",
                 "score_high")


def run_experiment(work: ExperimentRun) -> Json:
    """Do what is missing of an experiment, write its results, and return them.

    Raises as :meth:`ExperimentRun.begin` and :meth:`ExperimentRun.run`.
    """
    with work.begin():
        if work.experiment.search.ranges:
            Tuning(work).run()
        else:
            work.run()
    body = results_json(work)
    write_json(work.out / RESULTS, body)
    return body


def results_json(work: ExperimentRun) -> Json:
    """Everything that an experiment found.

    ``verdicts`` has an entry for each variant and budget, ``runs`` one for each variant and seed,
    ``matches`` one for each match against the first variant, and ``rows`` one for each run and
    budget, where ratings or costs were asked for. Differences are score above one half, or points.
    Energies are pJ, by all models; they are not measured.
    """
    rated = [part for part in work.parts if part.played]
    ratings = rate_on_ladder(
        work.ladder, {part.model.name: part.played for part in rated}, work.available.approximate
    ) if rated else []
    by_part = {part.model.name: rating for part, rating in zip(rated, ratings, strict=True)}
    return asdict(work.experiment.header) | {
        "id": read_json(work.out / FILE)["id"],
        "file": work.experiment.to_json(), "first": work.experiment.first,
        "verdicts": [
            _verdict(question, verdict, is_score=not work.matches[0].result.is_solo)
            for question, verdict in work.verdicts().items()
        ],
        "runs": [
            {"variant": run.variant, "seed": run.seed, "path": str(run.path.relative_to(work.out)),
             "campaign_id": run.campaign_id, "figures": run.figures()}
            for _, run in sorted(work.runs.items())
        ],
        "matches": [_match(each, work.experiment.first) for each in work.matches],
        "scale": SCALE, "time": TIME, "energy_models": ENERGY_MODELS,
        "ladder": {
            "date": work.ladder.origin.get("date"), "engine": work.ladder.engine,
            "approximate_elo": APPROXIMATE_ELO,
        },
        "rows": [_row(part, by_part.get(part.model.name)) for part in work.parts],
    }


def read_results(out: Path) -> Json:
    """The results of the experiment in ``out``, of :func:`results_json`.

    Raises:
        UsageError: there are none yet.
    """
    if not (out / RESULTS).exists():
        raise UsageError(
            f"{out} holds no results of an experiment; run it: chess-snn experiment run FILE"
        )
    return read_json(out / RESULTS)


def _verdict(question: Question, verdict: Verdict, *, is_score: bool) -> Json:
    ends, elo = {"mean": verdict.mean, "low": verdict.low, "high": verdict.high}, {}
    if is_score:  # of a match, which is in [0, 1]
        ends = {name: min(max(value, -0.5), 0.5) for name, value in ends.items()}
        elo = {f"elo_{name}": _finite(elo_difference(0.5 + end)) for name, end in ends.items()}
    return asdict(question) | {name: _finite(value) for name, value in ends.items()} | elo | {
        "num_seeds": verdict.num_seeds, "verdict": verdict.words, "more_seeds": verdict.more_seeds,
        "text": str(verdict),
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _row(part: Part, rating: LadderRating | None) -> Json:
    """The cost of a move, and the strength; None where it was not asked for."""
    rated = {} if rating is None else rating.to_json()
    row = {
        "variant": part.run.variant, "seed": part.run.seed,
        "simulations": part.model.simulations, "is_equal_time": part.is_equal_time,
        **{name: rated.get(name) for name in ("elo", "elo_low", "elo_high")},
        "rating_games": rated.get("num_games", 0), "approximate": rated.get("approximate", False),
        "cost": part.cost and {name: part.cost[name] for name in part.cost if name != "layers"},
    }
    return row if part.cost is None else row | dict(_costs(part.model, part.cost))


def _costs(model: Model, cost: Json) -> Iterator[tuple[str, object]]:
    yield "neurons", neurons_text(cost)
    yield "spikes_per_evaluation", cost["counts"]["position"]["active"]
    yield "changed_share", cost["stream"][TWO_PLIES]["share"]
    yield "evaluations_per_move", cost["evaluations"]["move"]
    for name, figure in (("move", "measured"), ("move_least", "least"), ("move_most", "most")):
        yield f"ms_per_move_{figure}", 1000 * cost["seconds"][name]
    yield "joules_per_move_measured", cost["measured"] and cost["measured"]["joules_move"]
    for kind in ENERGY_MODELS:
        found = cost["energy"][kind]["of"]
        # A spiking network sends spikes or their changes. A baseline skips its zeros, or is dense.
        own = [
            name for name, each in found.items() if each["terms_pj"] and (
                cost["activation"] == "relu" or name == SPIKING or name.endswith(CHANGES)
            )
        ]
        yield f"{kind}_model_pj", {
            unit: {name: found[name][f"{unit}_pj"] for name in own} for unit in ("position", "move")
        }


def neurons_text(cost: Json) -> str:
    """``lif T=4`` with its ticks, ``ilif D=4`` with its levels, or ``relu``."""
    if cost["activation"] == "relu":
        return "relu"
    letter = "T" if cost["activation"] == "lif" else "D"
    return f"{cost['activation']} {letter}={cost['virtual_ticks']}"


def _match(match: HeadToHead, first: str) -> Json:
    summary = match.result.summary()
    return {
        "variant": match.run.variant, "seed": match.run.seed, "simulations": match.simulations,
        "against": first, "against_simulations": match.first_simulations,
        "is_equal_time": match.is_equal_time, "difference": match.difference[0],
        **{name: summary[name] for name in _MATCH},
        "elo": None if match.result.is_solo else elo_json(match.result),
        "points": summary.get("points"),
    }


def _number(row: Json, name: str, form: str, factor: float = 1.0) -> str:
    value = row["figures"].get(name)
    return "" if value is None else format(factor * value, form)


def _interval(row: Json, form: str, *names: str) -> str:
    """``0.61 (0.55 to 0.67)``; an end that nothing bounds is left open."""
    mean, low, high = (row[name] for name in names)
    if mean is None:
        return ""
    ends = [format(end, form) if end is not None else "?" for end in (low, high)]
    return f"{mean:{form}} ({' to '.join(ends)})"


def _energy(row: Json, model: str, way: int = 0) -> str:
    """Empty without costs, and in results that are older than the model."""
    found = row.get(f"{model}_model_pj")
    return joules_text([*found["move"].values()][way]) if found else ""


Columns = dict[str, Callable[[Json], str]]
"""The cells of a row, by heading."""
VERDICTS: Final[Columns] = {
    "variant": lambda row: row["variant"],
    "simulations": lambda row: (
        "equal time" if row["is_equal_time"] else str(row["simulations"])
    ),
    "seeds": lambda row: str(row["num_seeds"]),
    "difference": lambda row: _interval(
        row, "+.3f" if "elo_mean" in row else "+,.0f", "mean", "low", "high"
    ),
    "Elo": lambda row: (
        _interval(row, "+.0f", "elo_mean", "elo_low", "elo_high") if "elo_mean" in row else ""
    ),
    "verdict": lambda row: row["text"],
}
"""A row a verdict."""
RUNS: Final[Columns] = {
    "run": lambda row: f"{row['variant']}-{row['seed']}",
    "minutes": lambda row: _number(row, "seconds", ".1f", 1 / 60),
    "games": lambda row: _number(row, "games", ",.0f"),
    "positions": lambda row: _number(row, "positions", ",.0f"),
    "steps": lambda row: _number(row, "step", ",.0f"),
    "policy\nloss": lambda row: _number(row, "policy_loss", ".3f"),
    "value loss,\nheld out": lambda row: (
        _number(row, "holdout_value_loss", ".3f")
        or _number(row, "holdout_value_target_loss", ".3f")
    ),
    "spikes": lambda row: _number(row, "spike_rate", ".1%"),
    "changes": lambda row: _number(row, "change_rate", ".1%"),
    "best\nmoves": lambda row: (
        _number(row, "reference_policy_accuracy", ".1%")
        or _number(row, "holdout_policy_accuracy", ".1%")
    ),
}
"""A row a run."""
MATCHES: Final[Columns] = {
    "match": lambda row: f"{row['variant']}-{row['seed']}",
    "simulations": lambda row: f"{row['simulations']} : {row['against_simulations']}",
    "games": lambda row: str(row["num_games"]),
    "W-D-L": lambda row: f"{row['wins']}-{row['draws']}-{row['losses']}",
    "truncated": lambda row: str(row["truncated"]),
    "score (95 %)": lambda row: _interval(row, ".3f", "score", "score_low", "score_high"),
}
"""A row a match."""
COSTS: Final[Columns] = {
    "run": lambda row: f"{row['variant']}-{row['seed']}",
    "neurons": lambda row: row.get("neurons", ""),
    "simu-\nlations": lambda row: f"{row['simulations']:,}",
    "Elo (95 %)": lambda row: _interval(row, ".0f", "elo", "elo_low", "elo_high"),
    "spikes": lambda row: si_text(row["spikes_per_evaluation"]) if row["cost"] else "",
    "ms,\nmeasured": lambda row: f"{row['ms_per_move_measured']:.1f}" if row["cost"] else "",
    "45 nm\n(model)": lambda row: _energy(row, "convention"),
    "fair\n(model)": lambda row: _energy(row, "fair"),
    "chip\n(model)": lambda row: _energy(row, "chip"),
    "changed": lambda row: f"{row['changed_share']:.1%}" if "changed_share" in row else "",
    "changes,\nchip": lambda row: _energy(row, "chip", 1),
    "energy,\nmeasured": lambda row: (
        joules_text(PJ_PER_J * joules) if (joules := row.get("joules_per_move_measured")) else ""
    ),
}
"""A row a run and budget."""
TABLES: Final[dict[str, tuple[str, Columns]]] = {
    "verdicts": ("Difference to {first} over seeds, 95 % intervals", VERDICTS),
    "runs": ("Runs, and the newest figures of each", RUNS),
    "matches": ("Matches against {first} with the same seed", MATCHES),
    "rows": ("Strength on the ladder, and cost", COSTS),
}
"""Tables of the results, by their key: title and columns."""


def columns_of(rows: Sequence[Json], columns: Columns) -> Columns:
    """Those of ``columns`` in which a row has something."""
    return {name: cell for name, cell in columns.items() if any(map(cell, rows))}
