"""A campaign whose object store refuses, is away, or is to be sent what is damaged."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign_driver import finish, kill_campaign, launch, settings, wait_until
from s3_server import BUCKET, CREDENTIALS, S3Server
from small_campaigns import assert_whole

from chess_snn.campaign import CampaignFolder, read_receipts

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(900)]

PATIENCE_S = 20
SETTINGS = settings(
    campaign__iterations=2, campaign__seed=7, self_play__games_per_iteration=8,
    self_play__games_per_shard=4, self_play__max_plies_first=6, self_play__max_plies_last=8,
    search__simulations_first=2, search__simulations_last=2, training__batch_size=32,
    evaluation__num_openings=1, evaluation__max_plies=6, evaluation__opponents='["random"]',
    evaluation__won_positions=2, execution__workers=1,
    storage__patience_s=PATIENCE_S, execution__overlap="false",
)


@pytest.fixture(autouse=True)
def reachable_afterwards(server: S3Server) -> Iterator[None]:
    yield
    server.gate.close()
    server.gate.open()


def place(server: S3Server, name: str) -> list[str]:
    """Through the gate."""
    return [
        f"--set=storage.object_store=s3://{BUCKET}/{name}",
        f"--set=storage.endpoint={server.gate.endpoint}",
    ]


def records(server: S3Server, name: str) -> int:
    keys = server.object_keys()
    return sum(k.startswith(f"{name}/records/") and k.endswith("MANIFEST.json") for k in keys)


def test_a_campaign_outlives_its_store_and_is_restored_from_it(tmp_path: Path, server: S3Server):
    path, log = tmp_path / "c", tmp_path / "log"
    options = [*SETTINGS, *place(server, "away")]
    process = launch("start", "--dir", str(path), *options, log=log, environment=CREDENTIALS)
    wait_until((path / "plans" / "iter-000000.json").exists, process, log)
    server.gate.close()
    assert process.wait(300) == 2, log.read_text()[-3000:]
    text = log.read_text()
    assert f"s3://{BUCKET}/away is away and asked again" in text
    assert re.search(f"error: cannot (read|write) s3://{BUCKET}/away/", text)
    assert CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in text
    assert records(server, "away") == 0
    before = read_receipts(CampaignFolder.open(path))
    assert len(before) == 1, "what was committed before the store went away is there"

    # Still away: it is named before any work.
    process = launch("resume", str(path), log=tmp_path / "log2", environment=CREDENTIALS)
    assert process.wait(120) == 2
    assert "compiling" not in (tmp_path / "log2").read_text()
    server.gate.open()

    finish(launch("resume", str(path), log=log, environment=CREDENTIALS), log)
    folder = assert_whole(path)
    assert read_receipts(folder)[:1] == before
    assert records(server, "away") >= 1, "what was there before goes with what is new"

    restored = subprocess.run(
        [sys.executable, "-m", "chess_snn", "campaign", "restore", f"s3://{BUCKET}/away",
         "--dir", str(tmp_path / "again"), "--endpoint", server.gate.endpoint],
        env=os.environ | CREDENTIALS, capture_output=True, text=True, check=False,
    )
    assert restored.returncode == 0, restored.stdout + restored.stderr
    assert "2 iterations restored" in restored.stdout
    again = assert_whole(tmp_path / "again")
    assert content_of(again) == content_of(folder)

    # Nothing is left to be sent, by either.
    done = launch("resume", str(path), log=tmp_path / "log3", environment=CREDENTIALS)
    finish(done, tmp_path / "log3")
    assert "folders and" not in (tmp_path / "log3").read_text()


def test_a_store_that_is_back_in_time_costs_nothing(tmp_path: Path, server: S3Server):
    path, log = tmp_path / "c", tmp_path / "log"
    options = [*SETTINGS, *place(server, "back"), "--set=storage.patience_s=300"]
    process = launch("start", "--dir", str(path), *options, log=log, environment=CREDENTIALS)
    wait_until((path / "plans" / "iter-000000.json").exists, process, log)
    server.gate.close()
    wait_until(lambda: "is away and asked again" in log.read_text(), process, log)
    server.gate.open()
    finish(process, log)
    assert_whole(path)
    assert records(server, "back") >= 2


@pytest.mark.fault(11)
def test_damage_that_is_met_while_sending_is_mended_bug(tmp_path: Path, server: S3Server):
    path, log = tmp_path / "c", tmp_path / "log"
    process = launch("start", "--dir", str(path), *SETTINGS, log=log)
    wait_until((path / "plans" / "iter-000001.json").exists, process, log)
    kill_campaign(process)
    # Nobody but who sends it reads this again: the second iteration goes on from generation 1.
    damaged = path / "checkpoints" / "gen-000000" / "optimizer.safetensors"
    damaged.write_bytes(b"")

    log.unlink()
    options = place(server, "damaged")
    finish(launch("resume", str(path), *options, log=log, environment=CREDENTIALS), log)
    text = log.read_text()
    assert "DAMAGED: " in text
    assert "generation 0 was rebuilt" in text
    assert_whole(path)
    assert f"damaged/checkpoints/gen-000000/{damaged.name}" in server.object_keys()
    assert records(server, "damaged") >= 1


@pytest.mark.parametrize(("change", "message"), [
    ("read only", "one may not write"), ("no credentials", "no credentials for"),
])
def test_a_store_that_refuses_is_named_before_there_is_a_folder(
    tmp_path: Path, server: S3Server, change: str, message: str
):
    path, log, environment = tmp_path / "c", tmp_path / "log", dict(CREDENTIALS)
    options = [*SETTINGS, *place(server, "refused")]
    if change == "no credentials":
        environment["AWS_SECRET_ACCESS_KEY"] = ""
    server.gate.refuses_puts = change == "read only"
    try:
        process = launch("start", "--dir", str(path), *options, log=log, environment=environment)
        assert process.wait(120) == 2
    finally:
        server.gate.refuses_puts = False
    (line,) = [x for x in log.read_text().splitlines() if x.startswith("error:")]
    assert message in line
    assert "Traceback" not in log.read_text()
    assert not path.exists()


def content_of(folder: CampaignFolder) -> dict[str, bytes]:
    """All but views and what is about one process."""
    return {
        path.relative_to(folder.path).as_posix(): path.read_bytes()
        for kind in ("games", "checkpoints", "plans", "matches", "receipts")
        for path in (folder.path / kind).rglob("*") if path.is_file()
    } | {"campaign.toml": (folder.path / "campaign.toml").read_bytes()}
