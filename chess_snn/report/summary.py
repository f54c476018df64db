"""The head of a report: key figures, and who played what for how long on which machine."""

from typing import Final

from chess_snn.campaign.store.plans import S_PER_HOUR
from chess_snn.campaign.viewing.figures import figure_text
from chess_snn.campaign.viewing.results import RATING_COLUMNS
from chess_snn.nets.analysis.operations import count_operations
from chess_snn.report.facts import CampaignFacts
from chess_snn.wording import counted

_NEURONS: Final = {"lif": "leaky neurons", "ilif": "integer neurons", "relu": "ReLU, no spikes"}


def summary_text(facts: CampaignFacts) -> str:
    """One sentence: the game, how far the campaign is, and where it came from."""
    state = "finished" if facts.is_finished else "not finished"
    began = f", begun {facts.created[:10]}" if facts.created else ""
    origin = f". It {facts.folder.origin.describe()}" if facts.folder.origin else ""
    return (
        f"A spiking network learns {facts.folder.config.campaign.game} by self-play: "
        f"{counted(len(facts.receipts), 'iteration')} of a campaign of {facts.length}, "
        f"{state}{began}{origin}."
    )


def key_figures(facts: CampaignFacts) -> dict[str, str]:
    """The figures that stand out, by their names."""
    receipts = facts.receipts
    strength = {}
    if facts.champion_ratings:
        surest = max(facts.champion_ratings, key=lambda rating: rating.num_games)
        strength["Elo above random"] = RATING_COLUMNS["Elo"](surest)
    return strength | {
        "champion": (
            f"gen {facts.champion}" if facts.champion is not None
            else "not known" if receipts else "none yet"
        ),
        "iterations": str(len(receipts)),
        "games": f"{sum(receipt.statistics.games for receipt in receipts):,}",
        "positions": f"{sum(receipt.statistics.positions for receipt in receipts):,}",
        "hours": f"{facts.elapsed_h:.2f}",
    }


def details(facts: CampaignFacts) -> dict[str, str]:
    """Everything else that one line can say, by its name."""
    config = facts.folder.config
    net, changes = config.net.network(), len(facts.recipe.changes)
    known = {
        **_strength(facts),
        "network": (
            f"{net.size}: {net.blocks} blocks of {net.channels} channels, "
            f"{_NEURONS[net.activation]}, {counted(net.ticks, 'tick')}, "
            f"{count_operations(facts.game.spec, net).parameters:,} parameters in play "
            f"({config.net.precision})"
        ),
        "settings": f"preset {facts.recipe.preset}, " + (
            f"with {counted(changes, 'setting')} changed" if changes else "unchanged"
        ) + f"; seed {config.campaign.seed}",
        "time": _time(facts),
        "machine": _provenance(facts, "machine", "devices"),
        "program": _provenance(facts, "version", "commit"),
        "torch, Python": _provenance(facts, "torch", "python"),
    }
    return {name: text for name, text in known.items() if text}


def _strength(facts: CampaignFacts) -> dict[str, str]:
    """What is known of the champion's strength; one line that says so where nothing is."""
    found = {
        f"rating of {rating.player}": f"Elo {RATING_COLUMNS['Elo'](rating)} "
        f"({RATING_COLUMNS['95 % interval'](rating)}), {rating.num_games:,} games"
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


def _time(facts: CampaignFacts) -> str:
    """Hours in all and by stage; stages may overlap."""
    seconds = [receipt.seconds for receipt in facts.receipts]
    stages = {
        "self-play": sum(each.self_play for each in seconds),
        "training": sum(each.training for each in seconds),
        "evaluation": sum(each.evaluation + each.gating_match for each in seconds),
    }
    return f"{facts.elapsed_h:.2f} h: " + ", ".join(
        f"{stage_s / S_PER_HOUR:.2f} h {name}" for name, stage_s in stages.items()
    ) if seconds else ""


def _provenance(facts: CampaignFacts, *names: str) -> str:
    return ", ".join(str(facts.provenance[name]) for name in names if facts.provenance.get(name))
