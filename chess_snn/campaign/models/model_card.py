"""What is known of a network, in words."""

import math

from chess_snn.campaign.models.versions import NetworkVersion
from chess_snn.evaluation.ratings import interval_text
from chess_snn.training import WEIGHTS
from chess_snn.types import Json


def model_card(version: NetworkVersion) -> str:
    """Markdown for people: what the network is, how strong, made of what, and how it is played."""
    games = "games with itself"
    if version.dataset is not None:
        games = f"a dataset, and then from {games}"
    return "\n".join([
        f"# {version.campaign}, generation {version.generation}",
        "",
        f"A network that plays chess, trained by chess-snn from {games}.",
        "",
        "| | |",
        "| --- | --- |",
        *(f"| {name} | {text} |" for name, text in describe(version).items()),
        "",
        "It is played by any command of chess-snn that takes a network:",
        "",
        "```console",
        "$ chess-snn play --model FOLDER",
        "$ chess-snn uci --model FOLDER",
        "$ chess-snn match FOLDER:64 greedy",
        "```",
        "",
        f"`{WEIGHTS}` is read by `chess_snn.nets.load_network`; `model.toml` has the settings of "
        "the campaign.",
        "",
        "Elo points count from a player of random moves, for the search budget named. Those on the "
        "ladder can be compared between campaigns; those by a campaign's own games cannot. Neither "
        "are ratings of people.",
        "",
    ])


def describe(version: NetworkVersion) -> dict[str, str]:
    """What is known of a version, for people, by its heading."""
    shards = version.window_shards
    rows = {
        "Elo on the ladder": elo_text(version.ladder_test),
        "Elo by its campaign's games": elo_text(version.rating),
        "score": score_text(version),
        "search budget": f"{version.simulations} simulations a move",
        "network": f"{version.size}, {version.parameters:,} parameters, "
                   f"{version.activation}, {version.ticks} ticks, {version.precision}",
        "shape": ", ".join(f"{name} {value}" for name, value in version.shape.items()),
        "spike rate": "" if version.spike_rate is None
                      else f"{version.spike_rate:.1%} of neurons and ticks",
        "candidacy": "" if version.promotion is None else str(version.promotion),
        "trained on": f"{version.window_positions:,} positions in {len(shards)} shards"
                      + (f", {shards[0]} to {shards[-1]}" if shards else ""),
        "pretraining dataset": "" if version.dataset is None
                       else f"{version.dataset} (digest {version.dataset_digest}), before the "
                            "first iteration",
        "campaign": f"{version.campaign} ({version.campaign_id})",
        "trained by": _provenance_text(version.provenance),
        "made": version.created,
        "digest": version.digest,
    }
    return {name: text for name, text in rows.items() if text}


def _provenance_text(facts: dict[str, str]) -> str:
    if not facts:
        return ""
    commit = f" at {facts['commit']}" if "commit" in facts else ""
    return (
        f"chess-snn {facts['version']}{commit} (sources {facts['sources']}), torch "
        f"{facts['torch']}, Python {facts['python']}; {facts['devices']} of {facts['machine']}"
    )


def rating_text(version: NetworkVersion) -> str:
    """The Elo on the ladder, else that by the campaign's own games; empty where there is none."""
    return elo_text(version.ladder_test or version.rating)


def elo_text(rating: Json | None) -> str:
    """``812 (730 to 905)``, or the one bound there is; empty without a rating."""
    if rating is None:
        return ""
    elo, low, high = (rating[name] for name in ("elo", "elo_low", "elo_high"))
    interval = interval_text(
        -math.inf if low is None else low, math.inf if high is None else high
    )
    is_bounded = elo is not None and low is not None and high is not None
    return f"{elo:.0f} ({interval})" if is_bounded else interval


def score_text(version: NetworkVersion) -> str:
    """``0.812 (0.700 to 0.905)``; empty where it was not evaluated."""
    if version.score is None or version.score_low is None or version.score_high is None:
        return ""
    return f"{version.score:.3f} ({version.score_low:.3f} to {version.score_high:.3f})"
