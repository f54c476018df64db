"""A campaign as one HTML file that needs no network: curves, tables, games, spikes, costs.

Everything is inside: styles, script, pictures and games. The same campaign gives the same file.
"""

from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Final

from chess_snn.campaign.store.folder import REPORT, CampaignFolder
from chess_snn.campaign.store.generations import read_generation
from chess_snn.campaign.store.notes import missing_notices, refuse_removed
from chess_snn.campaign.viewing.alarms import find_alarms
from chess_snn.data import write_text
from chess_snn.errors import CorruptDataError, RemovedError
from chess_snn.nets import Network
from chess_snn.report.commands import repeat_commands
from chess_snn.report.costs import sample_states, time_html, work_html
from chess_snn.report.facts import CampaignFacts, gather
from chess_snn.report.games import ShownGame, chosen_games
from chess_snn.report.headline import headline_html, words_html
from chess_snn.report.learning import curves_html, decisions_html, tables_html
from chess_snn.report.markup import data, element, paragraph, scrolling, section, tag
from chess_snn.report.openings import openings_html
from chess_snn.report.spikes import spikes_html
from chess_snn.training import load_weights_alone

_SECTIONS: Final = {
    "learning": "How it learned", "iterations": "Every iteration",
    "decisions": "Promotion decisions", "openings": "Openings", "games": "Best and worst games",
    "spikes": "Spikes", "costs": "Costs", "repeat": "Repeat it", "words": "What the words mean",
}
_CURVES_NOTE: Final = (
    "The line below a picture tells the newest values; point at the picture, or move along it with "
    "the arrow keys, for others. A curve of ratings has each rating as it was when its generation "
    "was new; the table of players below is fitted to all games together."
)
_STEPS: Final = (
    ("first", "|◀", "First position"), ("back", "◀", "One move back"),
    ("on", "▶", "One move on"), ("last", "▶|", "Last position"),
)


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
    sections = {key: "\n".join(filter(None, parts)) for key, parts in _sections(facts)}
    links = "".join(
        tag("li", element("a", _SECTIONS[key], href=f"#{key}")) for key in sections
    )
    body = "\n".join([
        tag("header", "\n".join(headline_html(facts, _notices(facts)))),
        tag("nav", tag("ul", links), aria_label="Contents"),
        tag("main", "\n".join(
            section(key, _SECTIONS[key], inner) for key, inner in sections.items()
        )),
        tag("footer", paragraph(
            f"Written by chess-snn from the campaign's folder alone. Campaign {folder.campaign_id}."
        )),
    ])
    styles = _static("web", "board.css") + _static("report", "report.css")
    # An inline module may not import, so the board comes without its exports' keyword.
    script = _static("web", "board.js").replace("\nexport ", "\n") + _static("report", "report.js")
    return (
        "<!DOCTYPE html>\n"
        f'<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'{element("title", f"{folder.name}, a campaign of chess-snn")}\n'
        f"<style>\n{styles}</style>\n</head>\n"
        f'<body>\n{body}\n<script type="module">\n{script}</script>\n</body>\n</html>\n'
    )


def _static(package: str, name: str) -> str:
    return (resources.files("chess_snn") / package / "static" / name).read_text(encoding="utf-8")


def _notices(facts: CampaignFacts) -> list[str]:
    alarms = find_alarms(facts.rows)
    return [*(f"ALARM {alarm}" for alarm in alarms), *facts.faults, *missing_notices(facts.folder)]


def _sections(facts: CampaignFacts) -> Iterator[tuple[str, Iterable[str]]]:
    """The parts of each section, by its key."""
    if facts.receipts:
        yield "learning", [curves_html(facts), paragraph(_CURVES_NOTE, "note")]
        yield "iterations", tables_html(facts)
        yield "decisions", decisions_html(facts)
        if not facts.is_solo:
            yield "openings", _or_fault(lambda: openings_html(facts))
        best, worst = list[ShownGame](), list[ShownGame]()
        try:
            best, worst = chosen_games(facts)
        except CorruptDataError as error:
            yield "games", [_fault(error)]
        else:
            yield "games", _games_html(facts, best, worst)
        network = _network(facts)
        yield "spikes", [network] if isinstance(network, str) else _or_fault(
            lambda: spikes_html(facts, network, best + worst)
        )
        yield "costs", [
            time_html(facts),
            *([network] if isinstance(network, str) else _or_fault(lambda: _work(facts, network))),
        ]
    else:
        yield "learning", [paragraph("No iteration is finished yet.")]
    yield "repeat", [_commands(facts)]
    yield "words", [words_html()]


def _or_fault(make: Callable[[], Iterable[str]]) -> list[str]:
    """Return what ``make`` gives; where a shard or a network is damaged, the error in its place."""
    try:
        return list(make())
    except (CorruptDataError, RemovedError) as error:
        return [_fault(error)]


def _fault(error: Exception) -> str:
    return paragraph(f"This cannot be shown: {error}.", "fault")


def _network(facts: CampaignFacts) -> Network | str:
    """The champion's network, or a paragraph that says why it is not there."""
    if facts.receipts and facts.champion is None:
        return paragraph("The champion is not known.", "fault")
    generation = facts.champion or 0
    try:
        refuse_removed(facts.folder, generation)
        read_generation(facts.folder, generation)
        return load_weights_alone(facts.folder.checkpoint(generation))
    except (CorruptDataError, RemovedError) as error:
        return paragraph(f"The champion's network cannot be read: {error}.", "fault")


def _work(facts: CampaignFacts, network: Network) -> Iterator[str]:
    states = sample_states(facts)
    if states is None:
        return iter([paragraph(
            "Operations and energy are counted on positions of self-play, which were removed."
        )])
    return work_html(facts, network, states)


def _games_html(
    facts: CampaignFacts, best: list[ShownGame], worst: list[ShownGame]
) -> Iterator[str]:
    if not best and not worst:
        yield paragraph(
            "No evaluation match has a game to show: none was played yet, or none was decisive."
        )
        return
    yield paragraph(
        "Of the evaluation matches: the games with the most and the fewest points."
        if facts.is_solo else
        "Of the evaluation matches: the shortest wins against the strongest opponent that was "
        "beaten, and the shortest losses.", "note",
    )
    for title, games in (("Best", best), ("Worst", worst)):
        if games:
            yield element("h3", title)
            yield from map(_game_html, games)


def _game_html(game: ShownGame) -> str:
    buttons = "".join(
        element("button", sign, type="button", data_step=step, aria_label=label, title=label)
        for step, sign, label in _STEPS
    )
    last = str(len(game.viewer["positions"]) - 1)
    slider = (
        f'<input type="range" min="0" max="{last}" value="{last}" '
        'aria-label="Position of the game">'
    )
    board = tag("div", (
        tag("div", "", class_="place") + tag("p", buttons + slider, class_="steps")
        + element("p", "", class_="told", aria_live="polite")
    ))
    pgn = ""
    if game.pgn:
        _, _, moves = game.pgn.partition("\n\n")
        text = scrolling(f"{game.title}, as PGN", element("pre", game.pgn), "pgn")
        pgn = paragraph(moves.strip(), "moves") + tag("details", element("summary", "PGN") + text)
    words = tag("div", f"{element('h4', game.title)}{paragraph(game.details)}{pgn}")
    return tag("article", f"{board}{words}{data(game.viewer, 'viewer')}", class_="game")


def _commands(facts: CampaignFacts) -> str:
    return scrolling("Commands", element("pre", "\n".join(repeat_commands(facts))), "pgn")
