"""Facts that a report is made from: everything that a campaign's folder says, read once.

The head of the report in words: key figures, and who played what for how long on which machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from chess_snn.campaign.configuration.loading import (
    config_values,
    flat_values,
    load_config,
    read_toml,
)
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.stages.training import trained_by
from chess_snn.campaign.store.folder import CONFIG_FILE, CampaignFolder
from chess_snn.campaign.store.match_facts import MatchFacts
from chess_snn.campaign.store.plans import S_PER_HOUR, Length, campaign_length
from chess_snn.campaign.store.receipts import Receipt, read_receipts
from chess_snn.campaign.strength.champions import (
    HandPromotion,
    champion_of,
    read_hand_promotions,
)
from chess_snn.campaign.strength.match_schedule import player_name
from chess_snn.campaign.strength.matches import is_finished, readable_final_matches
from chess_snn.campaign.strength.ratings import RatedCampaign, rate_campaign
from chess_snn.campaign.viewing.figures import figure_text
from chess_snn.campaign.viewing.results import RATING_COLUMNS, result_rows
from chess_snn.data import is_committed
from chess_snn.errors import CorruptDataError
from chess_snn.evaluation.ratings.result import Rating
from chess_snn.games import get_game
from chess_snn.games.base import Game
from chess_snn.known import PRESETS
from chess_snn.nets.analysis.operations import count_operations
from chess_snn.types import Json
from chess_snn.wording import counted

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A preset and the settings that make a campaign of it."""

    preset: str
    """Preset with the fewest settings to change."""
    changes: dict[str, Any]
    """Values of these, by dotted names."""


@dataclass(frozen=True, slots=True)
class CampaignFacts:
    """A campaign as it is in its folder now."""

    folder: CampaignFolder
    game: Game
    recipe: Recipe
    created: str
    """ISO 8601, UTC; empty if the folder does not say it."""
    length: Length
    """Length of the campaign."""
    is_finished: bool
    receipts: Sequence[Receipt]
    rows: Sequence[Json]
    """Rows of :func:`chess_snn.campaign.viewing.results.result_rows`, one a receipt."""
    finals: Sequence[MatchFacts]
    """Matches at its end."""
    rated: RatedCampaign | None
    """None before the first match against the random mover, and if a match is damaged."""
    champion: int | None
    """None before the first receipt, and if a choice by hand is damaged."""
    by_hand: Sequence[HandPromotion]
    provenance: Json
    """Program and machine that trained the newest generation; empty where that was not kept."""
    faults: Sequence[str]
    """Sentences that name what cannot be shown because it is damaged."""

    @property
    def is_solo(self) -> bool:
        """Return whether the game has one player."""
        return self.game.spec.num_players == 1

    @property
    def elapsed_h(self) -> float:
        """Hours that it had run when the newest iteration ended."""
        return self.receipts[-1].elapsed_s / S_PER_HOUR if self.receipts else 0.0

    @property
    def champion_ratings(self) -> list[Rating]:
        """Return the ratings of the champion, one for each search budget."""
        if self.rated is None or self.champion is None:
            return []
        name = player_name(self.champion, 0)
        return [
            rating for rating in self.rated.ratings.table if rating.player.split("@")[0] == name
        ]


def gather(folder: CampaignFolder) -> CampaignFacts:
    """Read the campaign in ``folder``; a damaged part is left out, and named in ``faults``.

    Raises:
        CorruptDataError: a plan or a receipt is damaged.
    """
    receipts = read_receipts(folder)
    newest = folder.checkpoint(len(receipts))
    finals, faults = readable_final_matches(folder)

    def read(part: str, read_part: Callable[[], _Part], missing: _Part) -> _Part:
        try:
            return read_part()
        except CorruptDataError as error:
            faults.append(f"{part} cannot be shown: {error}.")
            return missing

    return CampaignFacts(
        folder=folder,
        game=get_game(folder.config.campaign.game),
        recipe=_recipe_of(folder.config),
        created=_created(folder),
        length=campaign_length(folder),
        is_finished=is_finished(folder),
        receipts=receipts,
        rows=result_rows(folder, receipts),
        finals=finals,
        rated=read("Ratings by all games", lambda: rate_campaign(folder), None),
        champion=read("The champion", lambda: champion_of(folder, receipts), None),
        by_hand=read("Choices by hand", lambda: read_hand_promotions(folder), []),
        provenance=read(
            "What trained the network",
            lambda: trained_by(folder, len(receipts)) if is_committed(newest) else {}, {},
        ),
        faults=faults,
    )


def _recipe_of(config: CampaignConfig) -> Recipe:
    """The shortest way to ``config``; the campaign may have been started in another way."""
    wanted = flat_values(config_values(config))
    recipes = []
    for preset in PRESETS:
        values = flat_values(config_values(load_config(preset)))
        changes = {name: wanted[name] for name in wanted if values[name] != wanted[name]}
        recipes.append(Recipe(preset, changes))
    return min(recipes, key=lambda recipe: len(recipe.changes))


def _created(folder: CampaignFolder) -> str:
    identity: Any = read_toml(folder.path / CONFIG_FILE).get("identity", {})
    return str(identity.get("created", ""))


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
    changes, receipts = len(facts.recipe.changes), facts.receipts
    net = config.net.at(receipts[-1].plan.progress_first if receipts else 0.0).network()
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
    """The champion's strength; one line that says so where nothing is known."""
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
