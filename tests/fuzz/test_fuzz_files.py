"""Files that a campaign, a registry or a stranger may give us: all but PGN."""

import hashlib
import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np
from damaged_inputs import (
    change_value,
    changed_bytes,
    changed_json,
    either,
    fuzz,
    scratch,
    to_json,
)
from hypothesis import strategies as st
from stored_inputs import (
    GAME,
    stored_campaign,
    stored_folder,
    stored_import,
    stored_shard,
    stored_weights,
)
from stored_shards import forge, forge_files, zipped_part

from chess_snn.campaign.store.plans import read_plan
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.store.receipts import FORMAT, read_receipt, read_receipts
from chess_snn.campaign.strength.champions import champion_of, read_hand_promotions
from chess_snn.campaign.viewing.lines import iteration_line
from chess_snn.campaign.viewing.live import find_writer
from chess_snn.campaign.viewing.results import result_rows
from chess_snn.data import (
    MANIFEST_NAME,
    read_folder,
    read_json,
    read_manifest,
    read_shard,
    verify_folder,
)
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.openings import book_openings
from chess_snn.evaluation.players import GreedyPlayer, RandomPlayer
from chess_snn.evaluation.scores import pair_counts
from chess_snn.flows.server_records import read_record
from chess_snn.flows.services import RECORD_FILE, ServicesRecord
from chess_snn.nets import load_network, network_digest
from chess_snn.pgn.folder import IMPORT_FILE, REPORT_FILE, ImportFolder

ZARR_FILE = "target_weights/zarr.json"
OF_MANY_TYPES = ("conversion", "score", "rating", "promotion", "elapsed_s")
"""Values of a receipt that have more than one type."""


def sign(body) -> bytes:
    """A manifest or a receipt with the digest that fits it."""
    body.pop("digest", None)
    with suppress(ValueError):  # a number of thousands of digits
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
        body["digest"] = hashlib.sha256(text.encode()).hexdigest()
    return to_json(body)


changed_file = either(changed_json(to_json), changed_bytes())
changed_signed_file = either(changed_json(sign), changed_json(to_json), changed_bytes())


def edited(change, write=to_json):
    """Make an input from a valid one by ``change``."""

    def edit(valid: bytes) -> bytes:
        value = json.loads(valid)
        change(value)
        return write(value)

    return edit


@contextmanager
def replaced(path: Path, data: bytes) -> Iterator[None]:
    """Other content in a file for the length of the block."""
    before = path.read_bytes()
    path.write_bytes(data)
    try:
        yield
    finally:
        path.write_bytes(before)


def types_of(facts) -> list[type]:
    return [type(value) for name, value in asdict(facts).items() if name not in OF_MANY_TYPES]


@fuzz(
    lambda: [(stored_folder() / MANIFEST_NAME).read_bytes()], changed_signed_file,
    edited(lambda manifest: manifest.update(files="None"), sign),
)
def test_manifest(data):
    """All that a manifest lists lies in its folder, and a folder that is verified is as listed."""
    folder = stored_folder()
    with replaced(folder / MANIFEST_NAME, data):
        manifest = read_manifest(folder)
        for name in manifest.files:
            inside = (folder / name).resolve()
            assert inside.is_relative_to(folder.resolve()), name
            assert inside != folder.resolve()
        verify_folder(folder)
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {*manifest.files, MANIFEST_NAME}


@fuzz(
    lambda: [read_folder(stored_shard())[1][ZARR_FILE]], changed_file,
    edited(lambda column: column["chunk_key_encoding"]["configuration"].update(separator="\n")),
    edited(lambda column: column["codecs"][0]["configuration"].update({"a/../../b": ".."})),
)
def test_column_of_a_shard(data):
    """A column's description, in a Zip file whose manifest confirms it."""
    manifest, files = read_folder(stored_shard())
    shard = forge_files(scratch() / "forged", {**files, ZARR_FILE: data}, manifest.meta)
    assert read_shard(shard)[0].num_games == 2


@fuzz(lambda: [stored_shard().read_bytes()], changed_bytes())
def test_shard(data):
    """Only the shard that was written is accepted."""
    path = scratch() / "tried-shard"
    path.write_bytes(data)
    records, manifest = read_shard(path)
    assert records.num_games == 2
    assert zipped_part(path) == zipped_part(stored_shard())
    assert manifest.meta["game"] == "chess"


@fuzz(lambda: [zipped_part(stored_shard())], changed_bytes())
def test_archive(data):
    """A Zip file that its manifest confirms."""
    shard = forge(scratch() / "forged", data, read_manifest(stored_shard()).meta)
    assert read_shard(shard)[0].num_games == 2


def receipts() -> list[bytes]:
    """Receipts of the second iteration: the stored one, and one with every possible part."""
    plain = read_receipt(stored_campaign(), 1)
    games = PromotionFacts(
        candidate=2, champion=1, verdict="accept", llr=3.0, lower=-2.9, upper=2.9, elo0=0.0,
        elo1=75.0, simulations=0, games=4, wins=3, draws=1, losses=0, truncated=0,
        pairs=[0, 0, 0, 1, 1], score=0.875,
    )
    rating = {"elo": 120.0, "elo_low": 80.0, "elo_high": None, "games": 60, "opponents": 3}
    full = replace(plain, promotion=games, rating=rating)
    return [sign({"schema": FORMAT.version} | asdict(receipt)) for receipt in (plain, full)]


@fuzz(receipts, changed_signed_file)
def test_receipt(data):
    """An accepted receipt is read by everything that reads receipts."""
    folder = stored_campaign()
    sound = read_receipt(folder, 1)
    with replaced(folder.receipt(1), data):
        receipt = read_receipt(folder, 1)
        for part, like in ((receipt, sound), (receipt.training, sound.training),
                           (receipt.shards[0], sound.shards[0])):
            assert types_of(part) == types_of(like)
        found = read_receipts(folder)
        champion = champion_of(folder, found)
        assert champion is not None
        assert folder.checkpoint(champion).is_relative_to(folder.path)
        rows = result_rows(folder, found)
    assert all(iteration_line(row) for row in rows)
    json.dumps(rows, allow_nan=False)


@fuzz(lambda: [stored_campaign().plan(1).read_bytes()], changed_signed_file)
def test_plan(data):
    folder = stored_campaign()
    with replaced(folder.plan(1), data):
        plan = read_plan(folder, 1)
    assert 0 <= plan.progress_first <= plan.progress_last <= 1
    assert type(plan.iteration) is int


@fuzz(lambda: [stored_campaign().hand_promotion(0).read_bytes()], changed_signed_file)
def test_promotion(data):
    folder = stored_campaign()
    with replaced(folder.hand_promotion(0), data):
        (choice,) = read_hand_promotions(folder)
        champion = champion_of(folder, read_receipts(folder))
    assert types_of(choice) == [int, int, str, str, str, str]
    assert folder.checkpoint(champion or 0).is_relative_to(folder.path)


@cache
def match() -> bytes:
    """Four short games."""
    states = np.asarray(book_openings(GAME, 2, seed=1))
    played = play_match(GAME, RandomPlayer(), GreedyPlayer(GAME), states, seed=1, max_plies=12)
    return to_json(played.to_json())


@fuzz(lambda: [match()], changed_file)
def test_match(data):
    """An accepted match is written again as it was, and rated."""
    path = scratch() / "match.json"
    path.write_bytes(data)
    body = read_json(path)
    read = MatchResult.from_json(GAME.spec, body)
    for part in ("per_game", "openings"):
        for name, values in read.to_json()[part].items():
            given = body[part][name]
            # Base64 may be written in more than one way.
            assert len(values) == len(given) if name == "moves" else values == given, name
    assert pair_counts(read).sum() <= len(read.opening_keys)


@fuzz(lambda: [(stored_import().path / IMPORT_FILE).read_bytes()], changed_file)
def test_import(data):
    """An import's games lie within its folder."""
    path = stored_import().path
    with replaced(path / IMPORT_FILE, data):
        folder = ImportFolder.open(path)
    assert folder.shard(0).resolve().is_relative_to(path.resolve())
    assert types_of(folder.source) == [str, str, int, str, str]
    folder.shards()


@fuzz(
    lambda: [(stored_import().path / REPORT_FILE).read_bytes()], changed_file,
    edited(lambda report: report.update({"0": "/etc/passwd"})),
)
def test_import_report(data):
    folder = stored_import()
    with replaced(folder.path / REPORT_FILE, data):
        report = folder.report()
    assert report is not None
    assert report.to_json().keys() == json.loads(data).keys() - {"schema"}
    assert type(report.games_refused) is int


@fuzz(lambda: [to_json({
    "machine": "here", "pid": 2**22, "prefect_url": "http://127.0.0.1:4200/api",
    "mlflow_url": "http://127.0.0.1:5000",
})], changed_file)
def test_service_record(data):
    """A record that is not valid is ignored."""
    path = scratch() / RECORD_FILE
    path.write_bytes(data)
    record = read_record(ServicesRecord, path)
    assert record is None or isinstance(record.pid, int)


@fuzz(
    lambda: [to_json({"host": "here", "pid": 2**22, "since": "2026-01-31T12:00:00+00:00"})],
    changed_file, b'{"pid": ' + b"[" * 3000,
)
def test_lock(data):
    folder = stored_campaign()
    folder.lock_file.write_bytes(data)
    find_writer(folder)


def split_weights(data: bytes) -> tuple[dict, bytes]:
    """The header of a safetensors file, and what follows."""
    (length,) = struct.unpack_from("<Q", data)
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def join_weights(header: dict, body: bytes) -> bytes:
    text = to_json(header)
    return struct.pack("<Q", len(text)) + text + body


def with_config(data: bytes, change) -> bytes:
    """Change the network's configuration in the header of a safetensors file."""
    header, body = split_weights(data)
    config = json.loads(header["__metadata__"]["config"])
    change(config)
    header["__metadata__"]["config"] = to_json(config).decode()
    return join_weights(header, body)


@st.composite
def changed_weights(draw, valid):
    """Change the header, or the network's configuration in it, and correct its length."""
    if draw(st.booleans()):
        return with_config(valid[0], lambda config: change_value(draw, config))
    header, body = split_weights(valid[0])
    change_value(draw, header)
    return join_weights(header, body)


@fuzz(
    lambda: [stored_weights().read_bytes()], either(changed_weights, changed_bytes()),
    lambda data: with_config(data, lambda config: config.update({"\n": "\\"})),
)
def test_weights(data):
    path = scratch() / "tried.safetensors"
    path.write_bytes(data)
    assert len(network_digest(load_network(path))) == 64
