"""Compares registered versions by their strength, which their tags say."""

import math

from mlflow.entities.model_registry import ModelVersion

from chess_snn.campaign.strength.ratings import Strength

SCALE_TAG = "scale"
"""Names the scale of the figures of :func:`.rating_figures`, which are tags too."""


def why_not_better(version: ModelVersion, holder: ModelVersion | None) -> str | None:
    """Why ``version`` does not take an alias from ``holder``; None if it does.

    Only a version that is measured takes it, and only from one that is below it on the same scale.
    """
    own = _strength_of(version)
    if own is None or not own.scale:
        return (
            f"{describe(version)} was not measured on the scale that campaigns share; set "
            "evaluation.ladder_test = true, or wait for an evaluation (evaluation.every)"
        )
    if holder is None:
        return None
    other = _strength_of(holder)
    if other is None or not own.is_comparable(other):
        return (
            f"that cannot be compared with {describe(version)}; to let the next champion have the "
            "alias, remove it on MLflow's page of the model"
        )
    return None if own.is_above(other) else f"the lower bound of {describe(version)} is not higher"


def describe(version: ModelVersion) -> str:
    """``version 7 (smoke-001, generation 4, Elo 402 (310 to 495) with 16 simulations, …)``."""
    campaign, generation = (version.tags.get(tag, "?") for tag in ("campaign", "generation"))
    rated = strength_text(version) or "not measured"
    return f"version {version.version} ({campaign}, generation {generation}, {rated})"


def strength_text(version: ModelVersion) -> str:
    """``Elo 402 (310 to 495) with 16 simulations``; empty if it was not measured."""
    strength = _strength_of(version)
    return "" if strength is None else str(strength)


def _strength_of(version: ModelVersion) -> Strength | None:
    """None if it was not measured."""
    figures = {name: _number(text) for name, text in version.tags.items()}
    return Strength.of_figures(
        version.tags.get(SCALE_TAG, ""),
        {name: number for name, number in figures.items() if math.isfinite(number)},
    )


def _number(text: str) -> float:
    """NaN if ``text`` is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan
