"""The services of `chess-snn up` in a home of their own, with everything that runs for them.

Every process that `up` starts inherits CHESS_SNN_HOME, by which the tests find them all.
"""

import base64
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings
from waiting import WAIT_S, wait_for  # noqa: F401 - tests import both from here

from chess_snn.flows.prefect_access import CREDENTIALS_FILE
from chess_snn.flows.server_processes import HOST
from chess_snn.ports import free_port

ROOT = Path(__file__).parents[2]
GONE_WITHIN_S = 30.0


class Home:
    """A CHESS_SNN_HOME with ports of its own."""

    def __init__(self, path: Path, **environment: str) -> None:
        self.path = path
        self.ports = (free_port(), free_port())
        self.api_url = f"http://{HOST}:{self.ports[0]}/api"
        self.mlflow_url = f"http://{HOST}:{self.ports[1]}"
        foreign = ("PREFECT_", "MLFLOW_", "CHESS_SNN_CREDENTIALS")
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(foreign)
        }
        self.environment = inherited | {
            "CHESS_SNN_HOME": str(path),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            # Set up as where chess-snn is installed alone: no profile of another server.
            "PREFECT_HOME": str(path / "client"), **environment,
        }

    def start(self, *arguments: object, module: str = "chess_snn") -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)], cwd=self.path.parent,
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )

    def run(self, *arguments: object, module: str = "chess_snn") -> subprocess.CompletedProcess:
        process = self.start(*arguments, module=module)
        said, _ = process.communicate(timeout=WAIT_S)
        return subprocess.CompletedProcess(process.args, process.returncode, said)

    def up(self, *options: object) -> subprocess.CompletedProcess:
        return self.run("up", *self.port_options, *options)

    @property
    def port_options(self) -> tuple[object, ...]:
        return ("--prefect-port", self.ports[0], "--mlflow-port", self.ports[1])

    @property
    def credentials(self) -> str:
        """``user:password`` of the Prefect server."""
        given = self.environment.get("CHESS_SNN_CREDENTIALS")
        return given or (self.path / "services" / CREDENTIALS_FILE).read_text().strip()

    def export(self) -> None:
        """Set the variables that ``up`` prints for clients of Prefect."""
        self.environment |= {
            "PREFECT_API_URL": self.api_url, "PREFECT_API_AUTH_STRING": self.credentials,
        }

    def deployment(self, name: str, **parameters: object) -> str:
        """Watch a run to its end; what it printed."""
        self.export()
        given = [f"--param={key}={json.dumps(value)}" for key, value in parameters.items()]
        return self.run("deployment", "run", name, "--watch", *given, module="prefect").stdout

    def client(self):
        with temporary_settings({
            PREFECT_API_URL: self.api_url, PREFECT_API_AUTH_STRING: self.credentials,
        }):
            return get_client(sync_client=True)

    def supervisor(self) -> psutil.Process:
        record = json.loads((self.path / "services" / "services.json").read_text())
        return psutil.Process(record["pid"])

    def logs(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')}"
            for path in sorted((self.path / "services").glob("*.log"))
        )

    def processes(self) -> list:
        """Whatever runs with this home, but for this test."""
        found = []
        for process in psutil.process_iter():
            try:
                is_ours = process.environ().get("CHESS_SNN_HOME") == str(self.path)
                if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return found

    def is_left_alone(self) -> bool:
        deadline = time.monotonic() + GONE_WITHIN_S
        while self.processes():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def post(self, path: str, body: dict, user: str = "") -> dict:
        """An answer of MLflow's API."""
        headers = {"Content-Type": "application/json"}
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        request = urllib.request.Request(
            f"{self.mlflow_url}/api/2.0/mlflow/{path}", json.dumps(body).encode(), headers
        )
        return json.load(urllib.request.urlopen(request))


@contextmanager
def services_up(path: Path) -> Iterator[Home]:
    """Services that are up, from a clean home; at the end nothing of them is left."""
    made = Home(path)
    said = made.up("--runs", 2)
    try:
        assert said.returncode == 0, said.stdout + made.logs()
        made.said = said.stdout
        yield made
        down = made.run("down")
        assert down.returncode == 0, down.stdout
        assert made.is_left_alone(), [process.cmdline() for process in made.processes()]
    finally:
        for process in made.processes():
            process.kill()
