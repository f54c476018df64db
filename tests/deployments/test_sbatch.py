"""The batch file that docs/cluster.md shows, run with stand-ins for Slurm's and our own command."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "cluster.md"
STAND_IN = """#!/bin/bash
trap 'echo told >> "$SAID"; kill "$!"; exit 130' TERM
echo "${0##*/} $*" >> "$SAID"
[[ $1 != campaign ]] || { sleep "$STEPS" & wait; }
"""


def start(tmp_path: Path, steps: str) -> tuple[subprocess.Popen[bytes], Path]:
    """The script with its folders below ``tmp_path``; what it calls is written into the file."""
    found = re.search(r"```bash\n(#!/bin/bash.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    script = tmp_path / "job.sbatch"
    script.write_text(found[1].replace("/shared/campaigns", str(tmp_path / "campaigns")))
    programs, said = tmp_path / "chess-snn" / ".venv" / "bin", tmp_path / "said"
    programs.mkdir(parents=True)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"')
    for name in ("chess-snn", "srun"):
        (programs / name).write_text(STAND_IN)
        (programs / name).chmod(0o755)
    environment = os.environ | {
        "HOME": str(tmp_path), "SLURM_JOB_ID": "7", "SAID": str(said), "STEPS": steps,
    }
    return subprocess.Popen(["bash", str(script)], env=environment), said


@pytest.mark.parametrize("is_begun", [False, True])
def test_it_has_a_scheduler_workers_and_a_campaign_that_starts_or_goes_on(tmp_path, is_begun):
    folder = tmp_path / "campaigns" / "first"
    if is_begun:
        folder.mkdir(parents=True)
        (folder / "campaign.toml").touch()
    job, said = start(tmp_path, "0.2")
    assert job.wait(30) == 0
    host = os.uname().nodename
    verb = f"resume {folder}" if is_begun else f"start --preset gpu --dir {folder}"
    assert set(said.read_text().splitlines()) == {
        f"chess-snn cluster scheduler --host {host}",
        f"srun chess-snn cluster worker tls://{host}:8786",
        f"chess-snn campaign {verb} --cluster tls://{host}:8786",
    }


def test_a_job_whose_time_is_over_stops_the_campaign_and_waits_for_it(tmp_path):
    job, said = start(tmp_path, "60")
    while not said.exists() or "campaign" not in said.read_text():
        assert job.poll() is None
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 130
    assert "told" in said.read_text().splitlines()
