import multiprocessing
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_records import assert_same_records
from shard_writers import records_of, write_for_ever, write_under_limit

from chess_snn.data import read_shard, sweep_temporaries, write_shard

DEADLINE_S = 60


@pytest.fixture(scope="module")
def processes():
    """Starts processes that have the imports behind them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chess_snn.data", "made_records"])
    return context


def wait_for(path):
    deadline = time.monotonic() + DEADLINE_S
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.002)


def kill_a_writer(processes, parent, delay_s):
    """Shards that are visible after kill -9 in the middle of writing, and what else is there."""
    parent.mkdir()
    writer = processes.Process(target=write_for_ever, args=(str(parent),), daemon=True)
    writer.start()
    try:
        wait_for(parent / "shard-0000")
        time.sleep(delay_s)
    finally:
        writer.kill()
        writer.join(DEADLINE_S)
    visible = sorted(path.name for path in parent.iterdir())
    shards = [name for name in visible if not name.startswith(".tmp-")]
    return shards, [name for name in visible if name not in shards]


@pytest.mark.fault(9)
@pytest.mark.parametrize("num_kills", [10, pytest.param(25, marks=pytest.mark.slow)])
def test_kill_in_mid_shard_leaves_no_visible_partial_shard(tmp_path, processes, num_kills):
    stream = random.Random(num_kills)
    num_leftovers = 0
    for k in range(num_kills):
        parent = tmp_path / f"kill-{k}"
        shards, leftovers = kill_a_writer(processes, parent, stream.uniform(0, 0.08))
        assert shards == [f"shard-{index:04d}" for index in range(len(shards))]
        for index, shard in enumerate(shards):
            assert_same_records(read_shard(parent / shard)[0], records_of(index), exact=False)
        num_leftovers += len(leftovers)
        assert sorted(path.name for path in sweep_temporaries(parent)) == leftovers
        assert sorted(path.name for path in parent.iterdir()) == shards
    assert num_leftovers > 0, "no kill met a shard in the making: the test showed nothing"


@pytest.mark.fault(12)
@pytest.mark.parametrize("max_file_bytes", [200, 10_000])
def test_a_file_size_limit_is_a_clear_error_and_leaves_old_shards(
    tmp_path, processes, max_file_bytes
):
    write_shard(tmp_path / "shard-0000", records_of(0), {"game": "chess"})
    here, there = processes.Pipe()
    process = processes.Process(
        target=write_under_limit, args=(str(tmp_path), max_file_bytes, there)
    )
    process.start()
    assert here.poll(DEADLINE_S)
    message = here.recv()
    process.join(DEADLINE_S)
    assert "cannot write" in message
    assert "shard-0001" in message
    assert "ulimit -f" in message
    assert [path.name for path in tmp_path.iterdir()] == ["shard-0000"]
    assert_same_records(read_shard(tmp_path / "shard-0000")[0], records_of(0), exact=False)


@pytest.mark.fault(12)
def test_a_full_disk_is_a_clear_error_and_leaves_old_shards(tmp_path):
    mount = 'mount -t tmpfs -o size=1m tmpfs "$1"'
    fill = "import sys; from shard_writers import fill_disk; fill_disk(sys.argv[1])"

    def on_a_small_disk(command):
        return subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c", f"{mount} && {command}",
             "sh", tmp_path, sys.executable, fill],
            check=False, capture_output=True, text=True, timeout=DEADLINE_S,
            cwd=Path(__file__).parent,
        )

    if shutil.which("unshare") is None or on_a_small_disk("true").returncode:
        pytest.skip("mounting a small disk is not allowed here")
    run = on_a_small_disk('"$2" -c "$3" "$1"')
    assert run.returncode == 0, run.stderr
    message, num_intact = run.stdout.splitlines()
    assert "cannot write" in message
    assert "No space left on device; free space on that disk" in message
    assert int(num_intact) > 0
