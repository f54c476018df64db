"""The matches of a campaign, and what lies beside them: replayed, and compared with receipts."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from chess_snn.campaign.keeping.findings import Findings
from chess_snn.campaign.keeping.receipt_audit import Whereabouts
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import PART_MARK, CampaignFolder
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.strength.match_games import match_files, read_match
from chess_snn.campaign.strength.matches import (
    BESIDE_MATCHES,
    CLIMB,
    CONVERSION,
    champion_match,
    event_of,
)
from chess_snn.campaign.strength.reports import read_report
from chess_snn.errors import CorruptDataError, UnknownVersionError
from chess_snn.evaluation.match_files import match_fault, read_match_body
from chess_snn.games import Game
from chess_snn.types import Json


def audit_matches(
    folder: CampaignFolder, receipts: Mapping[int, Receipt], whereabouts: Whereabouts,
    findings: Findings,
) -> None:
    """Look at every whole match, and at what lies beside them."""
    game = game_of(folder)
    for path in match_files(folder):
        _audit_match(folder, game, path, findings)
    for name in BESIDE_MATCHES:
        for path in sorted((folder.path / "matches").glob(f"*/{name}.json")):
            _audit_file(folder, path, read_report, findings)
    for path in sorted((folder.path / "matches").glob(f"*/*{PART_MARK}*.json")):
        _audit_file(folder, path, read_match_body, findings)
    known = {finding.path for finding in findings.found}
    for iteration, receipt in sorted(receipts.items()):
        for name, told in _told(receipt):
            path = folder.match(event_of(iteration + 1), name)
            if folder.name_of(path) not in known:
                _compare(folder, path, told, whereabouts, findings)


def _told(receipt: Receipt) -> Iterator[tuple[str, Json]]:
    """What ``receipt`` says of each file among its generation's matches, by the file's name."""
    for match in receipt.matches:
        yield match["name"], match
    for name, beside in ((CONVERSION, receipt.conversion), (CLIMB, receipt.climb)):
        if beside is not None:
            yield name, beside
    if (gate := receipt.promotion) is not None:
        yield champion_match(gate.champion), {
            "num_games": gate.games, "wins": gate.wins, "draws": gate.draws,
            "losses": gate.losses, "capped": gate.capped, "score": gate.score,
        }


def _audit_file(
    folder: CampaignFolder, path: Path, read: Callable[[Path], Json], findings: Findings
) -> None:
    findings.checked["match"] += 1
    try:
        read(path)
    except UnknownVersionError as error:
        findings.add("match", folder.name_of(path), "unknown version", str(error))
    except CorruptDataError as error:
        if path.exists():  # else its match was put together meanwhile
            findings.add("match", folder.name_of(path), "damaged", str(error))


def _audit_match(
    folder: CampaignFolder, game: Game, path: Path, findings: Findings
) -> None:
    findings.checked["match"] += 1
    name = folder.name_of(path)
    try:
        result = read_match(game.spec, path).result
        fault = match_fault(game, result, read_match_body(path))
    except UnknownVersionError as error:
        findings.add("match", name, "unknown version", str(error))
    except CorruptDataError as error:
        findings.add("match", name, "damaged", str(error))
    else:
        findings.num_match_games += result.num_games
        if fault is not None:
            findings.add("match", name, "damaged", f"{path}: {fault}")


def _compare(
    folder: CampaignFolder, path: Path, told: Json, whereabouts: Whereabouts, findings: Findings
) -> None:
    """Compare what a file holds with what a receipt says of it."""
    if not path.exists():
        findings.add("match", *whereabouts.explain(folder.name_of(path)))
        return
    body = read_report(path) if path.stem in BESIDE_MATCHES else read_match_body(path)
    told = json.loads(json.dumps(told))
    if wrong := sorted(name for name in told if body.get(name) != told[name]):
        findings.add(
            "match", folder.name_of(path), "differs",
            f"{', '.join(wrong)} are not those of the receipt",
        )
