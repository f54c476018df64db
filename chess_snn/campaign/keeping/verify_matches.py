"""The matches of a campaign: replayed, and compared with what receipts say of them."""

import json
from collections.abc import Mapping
from pathlib import Path

from chess_snn.campaign.keeping.findings import Findings
from chess_snn.campaign.keeping.receipt_audit import Whereabouts
from chess_snn.campaign.stages.networks import game_of
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipts import Receipt
from chess_snn.campaign.strength.match_games import match_files, read_match
from chess_snn.campaign.strength.matches import BESIDE_MATCHES, event_of
from chess_snn.data import read_json
from chess_snn.errors import CorruptDataError, UnknownVersionError
from chess_snn.evaluation.match_audit import match_fault
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
            findings.checked["match"] += 1
            try:
                read_json(path)
            except CorruptDataError as error:
                findings.add("match", _name(folder, path), "damaged", str(error))
    known = {finding.path for finding in findings.found}
    for iteration, receipt in sorted(receipts.items()):
        for told in receipt.matches:
            path = folder.match(event_of(iteration + 1), told["name"])
            if _name(folder, path) not in known:
                _compare(folder, path, told, whereabouts, findings)


def _audit_match(
    folder: CampaignFolder, game: Game, path: Path, findings: Findings
) -> None:
    findings.checked["match"] += 1
    name = _name(folder, path)
    try:
        result = read_match(game.spec, path).result
        fault = match_fault(game, result, read_json(path))
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
    """Compare a match with its summary in a receipt."""
    if not path.exists():
        findings.add("match", *whereabouts.explain(_name(folder, path)))
        return
    body, told = read_json(path), json.loads(json.dumps(told))
    if wrong := sorted(name for name in told if body.get(name) != told[name]):
        findings.add(
            "match", _name(folder, path), "differs",
            f"{', '.join(wrong)} are not those of the receipt",
        )


def _name(folder: CampaignFolder, path: Path) -> str:
    return path.relative_to(folder.path).as_posix()
