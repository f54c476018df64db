"""The head of a report: who, what, how long, how strong; and what its words mean."""

from collections.abc import Iterator, Sequence
from typing import Final

from chess_snn.campaign.viewing.columns import RATING_COLUMNS
from chess_snn.campaign.viewing.figures import figure_text
from chess_snn.nets.analysis.operations import count_operations
from chess_snn.report.facts import CampaignFacts
from chess_snn.report.markup import element, paragraph, tag, terms
from chess_snn.wording import counted

_NEURONS: Final = {"lif": "leaky neurons", "ilif": "integer neurons", "relu": "ReLU, no spikes"}
_WORDS: Final = {
    "Campaign": "One run of learning: iterations of self-play, training and evaluation.",
    "Iteration, generation": "Iteration i plays games with generation i of the network and trains "
    "it to generation i + 1. Generation 0 is untrained, or pretrained.",
    "Candidate, champion": "A new generation is a candidate. It becomes the champion, the network "
    "to use, if it is rated above the champion before.",
    "Elo": "A scale of strength. 400 points are odds of 10 wins to 1 loss. Here the random mover "
    "has 0, and points of other scales, such as those of people, cannot be compared.",
    "95 % interval": "The range in which the true figure lies in 95 of 100 such measurements.",
    "Score": "Points over games: a win is 1, a draw ½, a loss 0. The mean score is over all "
    "opponents.",
    "Log-likelihood ratio": "How much the games speak for the candidate; the match ends when it "
    "leaves the given range.",
    "Loss, held out": "How far predictions are from the games, in nats; less is better. Held-out "
    "games are never trained on.",
    "Reference positions, best moves": "The same positions for every network, in which Stockfish "
    "has said what to play. Where the likeliest move is its best, the best move is found.",
    "Policy, entropy": "The network's preference among moves; entropy says how undecided it is, "
    "100 % for all moves alike.",
    "Truncated": "A game that reached the ply limit; it counts as drawn.",
    "Ply": "One move of one player.",
    "Simulation": "One step of the tree search, which evaluates one position at most.",
    "Spike, tick": "Neurons send spikes, 0 or 1 (integer neurons a few), in each step of time, the "
    "tick. The spike rate is the share of neurons and ticks with a spike.",
    "Accumulate": "Adding one weight for one spike. A multiply-accumulate multiplies first.",
    "Energy models": "Two ways to price the counted operations. Neither was measured on a chip.",
}


def headline_html(facts: CampaignFacts, notices: Sequence[str]) -> Iterator[str]:
    """Title, key figures, facts, and notices such as alarms."""
    folder = facts.folder
    yield element("p", "chess-snn campaign report", class_="kind")
    yield element("h1", folder.name)
    yield paragraph(_summary(facts), "summary")
    yield terms({
        name: element("span", figure) for name, figure in _figures(facts).items()
    }, "figures")
    yield terms({name: element("span", text) for name, text in _details(facts).items()}, "facts")
    if notices:
        items = "".join(element("li", notice) for notice in notices)
        yield tag("div", element("h2", "Notices") + tag("ul", items), class_="notices")


def _summary(facts: CampaignFacts) -> str:
    state = "finished" if facts.is_finished else "not finished"
    began = f", begun {facts.created[:10]}" if facts.created else ""
    origin = f". It {facts.folder.origin.describe()}" if facts.folder.origin else ""
    return (
        f"A spiking network learns {facts.folder.config.campaign.game} by self-play: "
        f"{counted(len(facts.receipts), 'iteration')} of a campaign of {facts.length}, "
        f"{state}{began}{origin}."
    )


def _figures(facts: CampaignFacts) -> dict[str, str]:
    return {
        "generations": str(len(facts.receipts)),
        "games": f"{facts.num_games:,}",
        "positions": f"{facts.num_positions:,}",
        "hours": f"{facts.elapsed_h:.2f}",
        "champion": (
            f"gen {facts.champion}" if facts.champion is not None
            else "not known" if facts.receipts else "none yet"
        ),
    }


def _details(facts: CampaignFacts) -> dict[str, str]:
    config = facts.folder.config
    net, changes = config.net.network(), len(facts.recipe.changes)
    details = {
        "game": config.campaign.game,
        "preset": f"{facts.recipe.preset}, " + (
            f"with {counted(changes, 'setting')} changed" if changes else "unchanged"
        ),
        "seed": str(config.campaign.seed),
        "network": (
            f"{net.size}: {net.blocks} blocks of {net.channels} channels, "
            f"{_NEURONS[net.activation]}, {counted(net.ticks, 'tick')}, "
            f"{count_operations(facts.game.spec, net).parameters:,} parameters in play "
            f"({config.net.precision})"
        ),
        **_strength(facts),
    }
    known = {
        "machine": facts.provenance.get("machine"), "devices": facts.provenance.get("devices"),
        "program": ", commit ".join(
            str(facts.provenance[name]) for name in ("version", "commit")
            if name in facts.provenance
        ),
        "torch, Python": ", ".join(
            str(facts.provenance[name]) for name in ("torch", "python") if name in facts.provenance
        ),
    }
    return details | {name: str(text) for name, text in known.items() if text}


def _strength(facts: CampaignFacts) -> dict[str, str]:
    """Return what is known of the champion's strength, or one line that nothing is."""
    found = {
        f"rating of {rating.player}": f"Elo {RATING_COLUMNS['Elo'](rating)} "
        f"({RATING_COLUMNS['95 % interval'](rating)}) above the random mover, "
        f"{rating.num_games:,} games"
        for rating in facts.champion_ratings
    }
    for row in facts.rows:
        if row["generation"] != facts.champion:
            continue
        if text := figure_text(row, "points"):
            found["champion's points"] = f"{text} by the evaluation's search"
        if text := figure_text(row, "ladder_elo"):
            found["champion on the ladder"] = f"Elo {text}"
    return found or {"rating": "not measured"}


def words_html() -> str:
    """Definitions in plain words."""
    return terms({name: element("span", text) for name, text in _WORDS.items()}, "words")
