"""The documented way from `up` to a game against the registered champion, as it is written."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.slow, pytest.mark.timeout(1800)]
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

from services_home import Home  # noqa: E402
from small_campaigns import SMALL  # noqa: E402

ROOT = Path(__file__).parents[2]
SETTINGS = [
    *SMALL, "campaign.iterations=1",
    "evaluation.ladder_test=true", "evaluation.ladder_test_games=4",
]
LOAD = """
import mlflow, pandas, sys
mlflow.set_tracking_uri(sys.argv[1])
model = mlflow.pyfunc.load_model("models:/chess-snn@champion")
fen = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
print(model.predict(pandas.DataFrame({"fen": [fen]}))[0]["best_move"])
"""


def documented_commands() -> list[str]:
    """Those that start campaigns from Prefect, and the one that plays with the champion."""
    section = (ROOT / "docs/cluster.md").read_text().partition("## Servers and deployments")[2]
    block = section.partition("```console\n")[2].partition("```")[0]
    lines = [line[2:].partition("  #")[0].strip() for line in block.splitlines()]
    play = re.search(
        r"`(chess-snn play --model models:/[^`]+)`", (ROOT / "README.md").read_text()
    )
    assert play is not None
    return [*lines, play[1]]


@pytest.fixture
def home(tmp_path):
    made = Home(tmp_path / "home")
    made.environment["PATH"] = f"{Path(sys.executable).parent}:{made.environment['PATH']}"
    yield made
    for process in made.processes():
        process.kill()


def test_the_champion_of_a_deployed_campaign_is_played_after_down(home, tmp_path):
    additions = {
        "chess-snn up": " ".join(map(str, home.port_options)),
        "prefect deployment run": f"--param settings='{json.dumps(SETTINGS)}'",
        "chess-snn play": "<<< $'e2e4\\nquit'",
    }
    script = []
    for command in documented_commands():
        script.append(
            command.replace("4200", str(home.ports[0])).replace("/data/chess-snn", str(home.path))
        )
        script[-1] += "".join(
            f" {more}" for begin, more in additions.items() if command.startswith(begin)
        )
    assert [line.split()[1] for line in script[-2:]] == ["down", "play"]
    done = subprocess.run(
        ["bash", "-euc", "\n".join(script)], check=False, cwd=tmp_path, env=home.environment,
        capture_output=True, text=True, timeout=1500,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}\n{home.logs()}"
    assert "2. your move" in done.stdout, "the champion has answered"
    assert home.is_left_alone()

    moved = home.path.rename(tmp_path / "moved") / "services" / "mlflow.db"
    assert not home.path.exists()
    loaded = subprocess.run(
        [sys.executable, "-c", LOAD, f"sqlite:///{moved}"], check=False, cwd=tmp_path,
        env=home.environment, capture_output=True, text=True, timeout=300,
    )
    assert loaded.returncode == 0, loaded.stderr
    assert re.fullmatch(r"[a-h][1-8][a-h][1-8]\n", loaded.stdout)
