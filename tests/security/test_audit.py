"""The audit of installed packages: fails by itself, warns by the network, says when it has none."""

import json
import runpy
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
NOBODY = "http://127.0.0.1:9/"


def audit(*options: object, service: str = NOBODY) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, ROOT / "security/audit.py", "--service", service, *map(str, options)],
        capture_output=True, text=True, check=False,
    )


@pytest.fixture
def database():
    """A data base that knows of one advisory for numpy; what it was asked is kept."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            answers = [
                {"vulns": [{"id": "TEST-1"}]} if query["package"]["name"] == "numpy" else {}
                for query in asked[-1]["queries"]
            ]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"results": answers}).encode())

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    server.asked = asked
    server.url = f"http://127.0.0.1:{server.server_port}/"
    yield server
    server.shutdown()
    server.server_close()


def test_without_a_network_it_says_so_and_fails_only_where_it_was_insisted_on():
    done = audit()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED: what was published since was NOT looked up" in done.stdout
    assert audit("--strict").returncode == 2


def test_a_version_known_to_be_unsafe_fails_without_a_network(tmp_path):
    advisories = tmp_path / "advisories.toml"
    advisories.write_text(
        '[[unsafe]]\npackage = "NumPy"\nbefore = "999"\nids = ["CVE-0"]\nwhy = "it rots"\n'
    )
    done = audit("--advisories", advisories)
    assert done.returncode == 1
    assert "UNSAFE: NumPy" in done.stdout
    assert "(CVE-0): it rots; install 999 or later" in done.stdout


def test_what_was_published_since_is_told_and_fails_where_it_was_insisted_on(database):
    told = audit(service=database.url)
    assert told.returncode == 0
    assert "WARNING: numpy" in told.stdout
    assert "TEST-1" in told.stdout
    assert audit("--strict", service=database.url).returncode == 1
    torch = next(q for q in database.asked[0]["queries"] if q["package"]["name"] == "torch")
    assert "+" not in torch["version"], "no data base knows local builds"


def test_an_advisory_that_was_decided_about_is_silent(database, tmp_path):
    advisories = tmp_path / "advisories.toml"
    advisories.write_text('[[accepted]]\nid = "TEST-1"\nwhy = "not ours"\n')
    done = audit("--strict", "--advisories", advisories, service=database.url)
    assert done.returncode == 0, done.stdout
    assert "TEST-1" not in done.stdout


def test_every_decision_has_its_reason_and_our_own_bounds_leave_unsafe_versions_out():
    script = runpy.run_path(str(ROOT / "security/audit.py"))
    decided = tomllib.loads(script["ADVISORIES"].read_text())
    assert all(entry["why"] and entry["ids"] for entry in decided["unsafe"])
    assert all(entry["why"] for entry in decided.get("accepted", []))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [*project["dependencies"], *(
        text for extra in project["optional-dependencies"].values() for text in extra
    )]
    bounds = {canonicalize_name((need := Requirement(text)).name): need for text in texts}
    checked = [entry for entry in decided["unsafe"] if entry["package"] in bounds]
    assert {"torch", "prefect", "mlflow", "distributed"} <= {e["package"] for e in checked}
    for entry in checked:
        version = script["Version"](entry["before"])
        just_before = f"{version.major}.{version.minor}.{version.micro}.dev0"
        assert not bounds[entry["package"]].specifier.contains(just_before, prereleases=True)
