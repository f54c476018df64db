"""A campaign as one HTML file that needs no network: strength, learning, table, games, spikes.

Everything is inside: styles, script, data of curves, pictures and games. The same campaign gives
the same file. This module and those beside it gather facts; ``templates/`` says how they look.
"""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from chess_snn.campaign.configuration.loading import format_toml
from chess_snn.campaign.store.folder import REPORT, CampaignFolder
from chess_snn.campaign.store.notes import missing_notices
from chess_snn.campaign.store.plans import EXTENSIONS, Length
from chess_snn.campaign.store.typed_json import numbered_files
from chess_snn.campaign.strength.champions import HandPromotion
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.campaign.viewing.results import RATING_COLUMNS, iteration_columns, match_columns
from chess_snn.data import write_text
from chess_snn.errors import CorruptDataError, RemovedError
from chess_snn.report.charts import charts_of, table_of
from chess_snn.report.facts import CampaignFacts, details, gather, key_figures, summary_text
from chess_snn.report.games import chosen_games
from chess_snn.report.openings import opening_tables
from chess_snn.report.spikes import load_champion, rasters, work_of

_Part = TypeVar("_Part")
_COMPACT: Final = {"separators": (",", ":"), "ensure_ascii": False}


@dataclass(frozen=True, slots=True)
class Fault:
    """The reason why a part of a report cannot be shown."""

    fault: str


def write_report(folder: CampaignFolder, out: Path | None = None) -> Path:
    """Write the report of the campaign in ``folder`` and return where it is.

    Args:
        folder: the campaign.
        out: the file; by default ``report.html`` in the folder. It is replaced as a whole.

    Raises:
        CorruptDataError: a plan or a receipt is damaged; other damage is named in the report.
        UsageError: the file cannot be written.
    """
    target = out or folder.path / REPORT
    write_text(target, report_html(folder))
    return target


def report_html(folder: CampaignFolder) -> str:
    """The report as text. Raises as :func:`write_report`."""
    facts = gather(folder)
    alarms = find_alarms(facts.rows)
    return template("report.html").render(
        facts=facts,
        style=Markup(report_style()),  # noqa: S704 - files of this package
        script=Markup(report_script()),  # noqa: S704
        summary=summary_text(facts),
        figures=key_figures(facts),
        details=details(facts),
        notices=[*(f"ALARM {alarm}" for alarm in alarms), *facts.faults, *missing_notices(folder)],
        commands=_part(lambda: repeat_commands(facts)),
        **(_sections(facts) if facts.receipts else {}),
    )


@cache
def report_style() -> str:
    """The style sheet of every report."""
    return _static("web", "board.css") + _static("report", "report.css")


@cache
def report_script() -> str:
    """The only script of every report, one module."""
    # An inline module may not import, so the board comes without its exports' keyword.
    board = _static("web", "board.js").replace("\nexport ", "\n")
    return board + _static("report", "charts.js") + _static("report", "games.js")


def _static(package: str, name: str) -> str:
    return (resources.files("chess_snn") / package / "static" / name).read_text(encoding="utf-8")


def template(name: str) -> Template:
    """The template of a page."""
    return _templates().get_template(name)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("chess_snn.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )
    templates.policies["json.dumps_kwargs"] = _COMPACT
    return templates


def _part(make: Callable[[], _Part]) -> _Part | Fault:
    """Return what ``make`` returns; the fault where a file that it reads is damaged or gone."""
    try:
        return make()
    except (CorruptDataError, RemovedError) as error:
        return Fault(str(error))


def _sections(facts: CampaignFacts) -> dict[str, Any]:
    """Return the parts of the sections once an iteration is finished, by name."""
    config = facts.folder.config
    evaluated = [row for row in facts.rows if row["score"] is not None]
    rated, games = facts.rated, _part(lambda: chosen_games(facts))
    shown = [] if isinstance(games, Fault) else [*games.best, *games.worst]
    network = _part(lambda: load_champion(facts))
    return {
        "strength_charts": charts_of(facts, "strength", over="generation"),
        "learning_charts": charts_of(facts, "learning", "self_play", "speed", "devices"),
        "spike_charts": charts_of(facts, "spikes"),
        "evaluations": table_of(
            "Evaluated generations, 95 % intervals", evaluated,
            iteration_columns(config, "strength"),
        ),
        "by_hand": table_of("Champions chosen by hand", facts.by_hand, {
            "when": lambda choice: f"after iteration {choice.num_finished - 1}",
            "champion": lambda choice: f"gen {choice.generation}",
            "how": lambda choice: choice.action,
            "who": lambda choice: choice.who,
            "why": lambda choice: choice.why,
        }, words=("how", "who", "why")),
        "finals": table_of(
            "Matches at the end of the campaign", facts.finals, match_columns(facts.finals),
            words=("player", "against"),
        ),
        "ratings": rated and table_of(
            f"All players, rated by all games; {rated.ratings.anchor} is 0",
            rated.ratings.table, RATING_COLUMNS,
        ),
        "iterations": table_of("Iterations", facts.rows, iteration_columns(config, "learning")),
        "games": games,
        "openings": None if facts.is_solo else _part(lambda: opening_tables(facts)),
        "network": network,
        "rasters": network if isinstance(network, Fault) else rasters(facts, network, shown),
        "work": network if isinstance(network, Fault) else _part(lambda: work_of(facts, network)),
    }


_VALUE = "value"


def setting_text(value: object) -> str:
    """``value`` as ``--set`` takes it, in TOML."""
    return format_toml({_VALUE: value}).removeprefix(f"{_VALUE} = ").strip()


def repeat_commands(facts: CampaignFacts) -> list[str]:
    """Commands for a shell that do again what was done, as far as the folder says it.

    They are in the order in which they were given. When the campaign was stopped and resumed is not
    known. A ``#`` begins a remark.

    Raises:
        CorruptDataError: an extension is damaged.
    """
    folder, origin, recipe = facts.folder, facts.folder.origin, facts.recipe
    name = shlex.quote(f"campaigns/{folder.name}")
    lines = [*_checkout(facts)]
    if origin is not None and origin.forked_at is not None:
        lines += [
            "# The settings are those of the fork; --set those that differ from its parent's.",
            f"chess-snn campaign fork {shlex.quote(f'campaigns/{origin.campaign}')} "
            f"--at {origin.forked_at} --dir {name}",
        ]
    else:
        start = [f"chess-snn campaign start --preset {recipe.preset} --dir {name}"]
        if origin is not None:
            games = " --with-games" if origin.games else ""
            start.append(f"--from {shlex.quote(origin.reference)}{games}")
        start += [
            f"--set {shlex.quote(f'{setting}={setting_text(value)}')}"
            for setting, value in recipe.changes.items()
        ]
        lines.append(" \\\n    ".join(start))
    return [*lines, *_later(facts, name), *_clock(facts)]


def _checkout(facts: CampaignFacts) -> Iterator[str]:
    commit = str(facts.provenance.get("commit", ""))
    if commit:
        changed = "; files were changed there" if commit.endswith("+") else ""
        yield f"git checkout {commit.removesuffix('+')}    # of chess-snn{changed}"


def _later(facts: CampaignFacts, name: str) -> list[str]:
    """Extensions and champions chosen by hand; a fork takes its parent's choices along."""
    extensions = map(EXTENSIONS.read, numbered_files(facts.folder.extension))
    events = [
        *((each.created, _extend(each.length, name)) for each in extensions),
        *((choice.created, _promote(choice, name)) for choice in facts.by_hand
          if choice.created >= facts.created),
    ]
    return [command for _, command in sorted(events, key=lambda event: event[0])]


def _extend(length: Length, name: str) -> str:
    wanted = f"--hours {length.hours:g}" if length.hours else f"--iterations {length.iterations}"
    return f"chess-snn campaign extend {name} {wanted}\nchess-snn campaign resume {name}"


def _promote(choice: HandPromotion, name: str) -> str:
    return (
        f"chess-snn models promote {name}@{choice.generation} --why {shlex.quote(choice.why)}"
        f"    # after iteration {choice.num_finished - 1}"
    )


def _clock(facts: CampaignFacts) -> Iterator[str]:
    if facts.length.hours:
        yield (
            "# The clock decided when iterations began, so games differ on a faster or slower "
            f"machine; this one had run for {facts.elapsed_h:.2f} h."
            if facts.receipts else "# The clock decides when iterations begin."
        )
