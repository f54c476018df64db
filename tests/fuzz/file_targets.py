"""Files that a campaign, a registry or a stranger may hand us: all but PGN."""

import hashlib
import json
import random
import struct
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import folders
from fuzzing import ACCEPTED, REFUSED, Target, Verdict
from mutation import change_value, json_values, octets, one_of, to_json
from stored_shards import forge, forge_files, zipped_part

from chess_snn.campaign.store.plans import read_plan
from chess_snn.campaign.store.receipts import FORMAT, read_receipt, read_receipts
from chess_snn.campaign.strength.champions import champion_of, read_hand_promotions
from chess_snn.campaign.viewing.lines import iteration_line
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.campaign.viewing.writer import find_writer
from chess_snn.data import (
    MANIFEST_NAME,
    read_folder,
    read_json,
    read_manifest,
    read_shard,
    verify_folder,
)
from chess_snn.evaluation import pair_counts
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.nets import load_network, network_digest
from chess_snn.pgn.folder import IMPORT_FILE, REPORT_FILE, ImportFolder
from flows.server_processes import read_record
from flows.services import RECORD_FILE, ServicesRecord

ZARR_FILE = "target_weights/zarr.json"


def try_manifest(data: bytes) -> Verdict:
    """Whatever a manifest lists lies in its folder, and a folder that is verified is as listed."""
    folder = folders.shard_folder()
    with _replaced(folder / MANIFEST_NAME, data):
        manifest = read_manifest(folder)
        for name in manifest.files:
            inside = (folder / name).resolve()
            assert inside.is_relative_to(folder.resolve()), name
            assert inside != folder.resolve()
        verify_folder(folder)
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {*manifest.files, MANIFEST_NAME}
    return ACCEPTED


def try_shard(data: bytes) -> Verdict:
    """A column's description, under a manifest that vouches for it."""
    manifest, files = read_folder(folders.shard())
    shard = forge_files(folders.scratch() / "forged", files | {ZARR_FILE: data}, manifest.meta)
    records, _ = read_shard(shard)
    assert records.num_games == 2
    return ACCEPTED


def try_shard_file(data: bytes) -> Verdict:
    """A whole shard: what is accepted is one that was written."""
    path = folders.scratch() / "tried-shard"
    path.write_bytes(data)
    records, manifest = read_shard(path)
    assert records.num_games == 2
    assert zipped_part(path) == zipped_part(folders.shard())
    assert manifest.meta["game"] == "chess"
    return ACCEPTED


def try_archive(data: bytes) -> Verdict:
    """A Zip file, under a manifest that vouches for it."""
    manifest = read_manifest(folders.shard())
    shard = forge(folders.scratch() / "forged", data, manifest.meta)
    records, _ = read_shard(shard)
    assert records.num_games == 2
    return ACCEPTED


def try_receipt(data: bytes) -> Verdict:
    """An accepted receipt is read by everything that reads receipts."""
    folder, sound = folders.campaign(), folders.receipts()[0]
    with _replaced(folder.receipt(1), data):
        receipt = read_receipt(folder, 1)
        for part, like in ((receipt, sound), (receipt.training, sound.training),
                           (receipt.shards[0], sound.shards[0])):
            assert _types(asdict(part)) == _types(asdict(like)), "values of other types"
        receipts = read_receipts(folder)
        champion = champion_of(folder, receipts)
        assert champion is not None
        assert folder.checkpoint(champion).is_relative_to(folder.path)
        rows = result_rows(folder.config, receipts)
    for row in rows:
        assert iteration_line(row)
    json.dumps(rows, allow_nan=False)
    return ACCEPTED


def try_plan(data: bytes) -> Verdict:
    folder = folders.campaign()
    with _replaced(folder.plan(1), data):
        plan = read_plan(folder, 1)
    assert 0 <= plan.progress_first <= plan.progress_last <= 1
    assert type(plan.iteration) is int
    return ACCEPTED


def try_promotion(data: bytes) -> Verdict:
    folder = folders.campaign()
    with _replaced(folder.hand_promotion(0), data):
        (choice,) = read_hand_promotions(folder)
        champion = champion_of(folder, read_receipts(folder))
    assert _types(asdict(choice)) == [int, int, str, str, str, str]
    assert folder.checkpoint(champion or 0).is_relative_to(folder.path)
    return ACCEPTED


def try_match(data: bytes) -> Verdict:
    """An accepted match is written again as it was, and rated."""
    path = folders.scratch() / "match.json"
    path.write_bytes(data)
    body = read_json(path)
    match = MatchResult.from_json(folders.GAME.spec, body)
    for part in ("per_game", "openings"):
        for name, column in match.to_json()[part].items():
            told = body[part][name]
            # Base64 may be written in more than one way.
            assert len(column) == len(told) if name == "moves" else column == told, name
    assert pair_counts(match).sum() <= len(match.opening_keys)
    return ACCEPTED


def try_import(data: bytes) -> Verdict:
    """Where an import's games lie follows from its description, and is within its folder."""
    path = folders.imported().path
    with _replaced(path / IMPORT_FILE, data):
        folder = ImportFolder.open(path)
    assert folder.shard(0).resolve().is_relative_to(path.resolve())
    assert _types(asdict(folder.source)) == [str, str, int]
    folder.shards()
    return ACCEPTED


def try_import_report(data: bytes) -> Verdict:
    folder = folders.imported()
    with _replaced(folder.path / REPORT_FILE, data):
        report = folder.report()
    assert report is not None
    assert report.to_json().keys() == json.loads(data).keys() - {"schema"}
    assert type(report.games_refused) is int
    return ACCEPTED


def try_services(data: bytes) -> Verdict:
    """A damaged record is taken for none."""
    path = folders.scratch() / RECORD_FILE
    path.write_bytes(data)
    record = read_record(ServicesRecord, path)
    if record is None:
        return REFUSED
    assert not record.is_running
    return ACCEPTED


def try_lock(data: bytes) -> Verdict:
    folder = folders.campaign()
    folder.lock_file.write_bytes(data)
    writer = find_writer(folder)
    return Verdict(writer is not None, None if writer is None else str(writer)[:12])


def try_weights(data: bytes) -> Verdict:
    path = folders.scratch() / "tried.safetensors"
    path.write_bytes(data)
    network = load_network(path)
    assert len(network_digest(network)) == 64
    return ACCEPTED


class _replaced:  # noqa: N801 - read as a verb
    """Other octets in a file for the length of the block."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path, self._data = path, data

    def __enter__(self) -> None:
        self._before = self._path.read_bytes()
        self._path.write_bytes(self._data)

    def __exit__(self, *_: object) -> None:
        self._path.write_bytes(self._before)


def _types(values: dict[str, Any]) -> list[type]:
    """Of the values that have one type only."""
    return [type(value) for name, value in values.items() if name not in _OF_MANY_TYPES]


_OF_MANY_TYPES = ("conversion", "score", "rating", "promotion", "elapsed_s")


def _sign(body: Any) -> bytes:
    """A manifest or a receipt with the digest that fits it."""
    if isinstance(body, dict):
        body.pop("digest", None)
        with suppress(ValueError):  # a number of thousands of digits
            text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
            body["digest"] = hashlib.sha256(text.encode()).hexdigest()
    return to_json(body)


def _split_weights(data: bytes) -> tuple[Any, bytes]:
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def _change_header(stream: random.Random, data: bytes, other: bytes) -> bytes:
    """The header of a safetensors file changed, its length set right; or its config alone."""
    try:
        header, body = _split_weights(data)
        if stream.random() < 0.5:
            metadata = header["__metadata__"]
            config = change_value(stream, json.loads(metadata["config"]))
            metadata["config"] = to_json(config).decode()
        else:
            header = change_value(stream, header)
    except (ValueError, TypeError, KeyError, struct.error, RecursionError):
        return octets()(stream, data, other)
    text = to_json(header)
    return struct.pack("<Q", len(text)) + text + body


def _file(path: Path) -> list[bytes]:
    return [path.read_bytes()]


def _receipts() -> list[bytes]:
    return [_sign({"schema": FORMAT.version} | asdict(found)) for found in folders.receipts()]


def _later_seed(make: Any) -> Any:
    """Seeds that are made when they are asked for."""
    return lambda: [to_json(make())]


_JSON = one_of((12, json_values()), (1, octets()))
_SIGNED = one_of((10, json_values(_sign)), (3, json_values()), (1, octets()))

TARGETS = (
    Target("manifest", try_manifest, _SIGNED,
           lambda: _file(folders.shard_folder() / MANIFEST_NAME), weight=60),
    Target("shard", try_shard, _JSON, lambda: _file(folders.shard_folder() / ZARR_FILE), weight=10),
    Target("shard-file", try_shard_file, octets(), lambda: _file(folders.shard()), weight=10),
    Target("archive", try_archive, octets(), lambda: [zipped_part(folders.shard())], weight=20),
    Target("receipt", try_receipt, _SIGNED, _receipts, weight=60),
    Target("plan", try_plan, _SIGNED, lambda: _file(folders.campaign().plan(1)), weight=20),
    Target("promotion", try_promotion, _SIGNED,
           lambda: _file(folders.campaign().hand_promotion(0)), weight=20),
    Target("match", try_match, _JSON, _later_seed(lambda: folders.match().to_json()), weight=40),
    Target("import", try_import, _JSON, lambda: _file(folders.imported().path / IMPORT_FILE),
           weight=20),
    Target("import-report", try_import_report, _JSON,
           lambda: _file(folders.imported().path / REPORT_FILE), weight=20),
    Target("services", try_services, _JSON, _later_seed(lambda: {
        "machine": "here", "pid": 2**22, "started": 1.0, "prefect_url": "http://127.0.0.1:4200/api",
        "mlflow_url": "http://127.0.0.1:5000", "runs": 1, "has_credentials": False,
        "is_ready": True,
    }), weight=20),
    Target("lock", try_lock, _JSON, _later_seed(lambda: {
        "host": "here", "pid": 2**22, "since": "2026-01-31T12:00:00+00:00",
    }), weight=20),
    Target("weights", try_weights, one_of((4, _change_header), (1, octets())),
           lambda: _file(folders.weights()), weight=25),
)
