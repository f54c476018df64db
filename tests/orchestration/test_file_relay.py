"""Files of a campaign on their way to workers, by a real scheduler."""

import asyncio
import hashlib
from contextlib import asynccontextmanager

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")

from distributed import Client, LocalCluster, Scheduler, get_worker  # noqa: E402

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.campaign.worker_cache import WantedFile  # noqa: E402
from chess_snn.data import StoredFile  # noqa: E402
from chess_snn.errors import CampaignError  # noqa: E402
from tasks import file_relay  # noqa: E402
from tasks.file_relay import (  # noqa: E402
    FileRelay,
    Piece,
    batches,
    fetch_through,
    files_served,
)

MIB = 1 << 20


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None,
            protocol="tcp", host="127.0.0.1",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def folder(tmp_path):
    made = CampaignFolder.create(tmp_path / "campaign", load_config(settings=[]))
    (made.path / "checkpoints").mkdir()
    return made


def put(folder, name, content):
    path = folder.path / "checkpoints" / name
    path.write_bytes(content)
    stored = StoredFile(len(content), hashlib.sha256(content).hexdigest())
    return WantedFile(f"checkpoints/{name}", stored)


def fetch(campaign_id, files):
    return list(fetch_through(get_worker(), campaign_id)(files))


def test_files_of_every_size_arrive_in_their_order(client, folder):
    contents = [b"", b"x", bytes(range(256)) * (MIB // 64 + 1), b"y" * (4 * MIB), b"z" * 100]
    wanted = [put(folder, f"file-{i}", content) for i, content in enumerate(contents)]
    with files_served(client, folder):
        got = client.submit(fetch, folder.campaign_id, wanted, pure=False).result()
    assert got == contents


def test_many_workers_take_a_file_out_of_the_campaign_once(client, folder, monkeypatch):
    wanted, reads = [put(folder, "weights", b"w" * 1000)], []
    read = file_relay.read_shown
    monkeypatch.setattr(file_relay, "read_shown", lambda *a: reads.append(a[1]) or read(*a))
    with files_served(client, folder):
        workers = list(client.scheduler_info()["workers"])
        futures = [
            client.submit(fetch, folder.campaign_id, wanted, workers=[worker], pure=False)
            for worker in 2 * workers
        ]
        assert client.gather(futures) == 4 * [[b"w" * 1000]]
    assert reads == ["checkpoints/weights"]


def test_a_file_that_was_damaged_and_mended_arrives_mended(client, folder):
    wanted = [put(folder, "weights", b"w" * 1000)]
    path = folder.path / wanted[0].path
    with files_served(client, folder):
        path.write_bytes(b"W" * 1000)
        got = client.submit(fetch, folder.campaign_id, wanted, pure=False).result()
        assert got == [b"W" * 1000]  # whoever wants it compares it with its digest
        path.write_bytes(b"w" * 1000)
        got = client.submit(fetch, folder.campaign_id, wanted, pure=False).result()
        assert got == [b"w" * 1000]


@pytest.mark.parametrize("path", ["campaign.toml", "checkpoints/../campaign.toml"])
def test_what_workers_may_not_read_is_refused_to_them_by_name(client, folder, path):
    wanted = [WantedFile(path, StoredFile(10, "0" * 64))]
    with files_served(client, folder), pytest.raises(CampaignError, match="workers may read"):
        client.submit(fetch, folder.campaign_id, wanted, pure=False).result()


def test_a_file_that_vanished_is_empty_until_it_is_made_again_bug(client, folder):
    wanted = [put(folder, "weights", b"w")]
    (folder.path / wanted[0].path).unlink()
    with files_served(client, folder):
        for content in (b"", b"w"):
            got = client.submit(fetch, folder.campaign_id, wanted, pure=False).result()
            assert got == [content]
            put(folder, "weights", b"w")


def test_messages_are_small_and_hold_every_byte_once():
    sizes = [0, 5 * MIB, 3 * MIB, 10, 9 * MIB]
    files = [WantedFile(f"f{i}", StoredFile(size, str(i))) for i, size in enumerate(sizes)]
    messages = list(batches("id", files))
    assert all(sum(piece.num_bytes for piece, _ in message) <= 4 * MIB for message in messages)
    pieces = [entry for message in messages for entry in message]
    for file in files:
        own = [(piece, is_last) for piece, is_last in pieces if piece.path == file.path]
        assert [piece.first for piece, _ in own] == list(range(0, max(1, file.content.num_bytes),
                                                              4 * MIB))
        assert sum(piece.num_bytes for piece, _ in own) == file.content.num_bytes
        assert [is_last for _, is_last in own] == [False] * (len(own) - 1) + [True]


@asynccontextmanager
async def relayed(relay: FileRelay):
    """``relay`` in a scheduler that no campaign is connected to."""
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        await relay.start(scheduler)
        yield lambda: [message for _, message in scheduler.get_events("campaign-files/id")]


def test_a_campaign_that_does_not_answer_is_said_so():
    async def ask():
        relay = FileRelay(patience_s=0.05)
        async with relayed(relay):
            return await relay.get([Piece("id", "checkpoints/weights", "0", 0, 1)])

    assert "checkpoints/weights of the campaign did not come within 0 s" in asyncio.run(ask())[
        "late"
    ]


def test_the_relay_forgets_what_was_asked_for_longest_ago():
    async def fill():
        relay = FileRelay(kept_bytes=25, patience_s=5.0)
        async with relayed(relay) as asked:
            for number in (0, 1, 0, 2, 0, 1):
                piece, before = Piece("id", f"f{number}", "0", 0, 10), len(asked())
                answer = asyncio.ensure_future(relay.get([piece]))
                await asyncio.sleep(0)
                if len(asked()) > before:
                    await relay.put(list(piece), bytes([number]) * 10, "")
                assert (await answer)["contents"] == [bytes([number]) * 10]
            return [message[1] for message in asked()]

    assert asyncio.run(fill()) == ["f0", "f1", "f2", "f1"]
