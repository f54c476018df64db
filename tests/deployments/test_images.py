"""Compose file and Dockerfile, read by the programs that they are for."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
DEPLOYMENTS = REPOSITORY / "deployments"
COMPOSE_FILE = DEPLOYMENTS / "compose" / "compose.yaml"
TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
"""Folder of linters: `make setup` puts them beside Python."""
PASSWORDS = {
    "CHESS_SNN_USER": "chess", "CHESS_SNN_PASSWORD": "canary-password-1",
    "POSTGRES_PASSWORD": "canary-password-2", "MLFLOW_SESSION_KEY": "canary-key",
}


def compose_command() -> list[str]:
    """Docker Compose, as a plugin or on its own; the test is skipped where there is none."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            told = subprocess.run([*command, "version", "--short"], capture_output=True, text=True,
                                  check=False).stdout
            if re.match(r"v?2\.", told):
                return command
    pytest.skip("Docker Compose 2 is not installed: compose.yaml is NOT checked")


def compose(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    inherited = {name: value for name, value in os.environ.items() if name not in PASSWORDS}
    return subprocess.run(
        [*compose_command(), "-f", str(COMPOSE_FILE), *arguments], env=inherited | environment,
        capture_output=True, text=True, check=False,
    )


def test_compose_understands_the_file_and_its_services_are_complete():
    done = compose("--profile", "gpu", "config", "--format", "json", **PASSWORDS)
    assert done.returncode == 0, done.stderr
    services = json.loads(done.stdout)["services"]
    assert set(services) == {"postgres", "prefect", "mlflow", "register", "worker", "worker-gpu"}
    for name in ("postgres", "prefect", "mlflow"):
        assert "healthcheck" in services[name]
    published = {
        (port["host_ip"], port["published"])
        for service in services.values() for port in service.get("ports", ())
    }
    assert published == {("127.0.0.1", "4200"), ("127.0.0.1", "5000")}, "loopback, and no others"
    for name in ("worker", "worker-gpu", "register"):
        environment = services[name]["environment"]
        assert environment["PREFECT_API_AUTH_STRING"] == "chess:canary-password-1"
        assert environment["MLFLOW_TRACKING_PASSWORD"] == "canary-password-1"
    for service in services.values():  # they would be seen in a list of processes
        assert "canary" not in json.dumps(service.get("command"))
        for volume in service.get("volumes", ()):
            if volume["type"] == "bind":
                assert Path(volume["source"]).is_file()


@pytest.mark.parametrize("missing", sorted(PASSWORDS))
def test_compose_refuses_to_start_without_passwords(missing):
    given = {name: value for name, value in PASSWORDS.items() if name != missing}
    done = compose("config", "--quiet", **given)
    assert done.returncode != 0
    assert missing in done.stderr


def test_containers_write_to_volumes_and_memory_alone_and_gain_no_rights():
    services = yaml.safe_load(COMPOSE_FILE.read_text())["services"]
    for name, service in services.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert {"mem_limit", "pids_limit", "tmpfs"} <= set(service), name


def test_the_key_of_sessions_is_no_password():
    mlflow = yaml.safe_load(COMPOSE_FILE.read_text())["services"]["mlflow"]["environment"]
    key = mlflow.pop("MLFLOW_FLASK_SERVER_SECRET_KEY")
    assert "SESSION_KEY" in key
    assert not any("SESSION_KEY" in value for value in mlflow.values())


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd is not installed: its unit is NOT checked",
)
def test_the_unit_is_valid_and_confined(tmp_path):
    text = (DEPLOYMENTS / "chess-snn.service").read_text()
    unit = tmp_path / "chess-snn.service"
    unit.write_text(re.sub("(?m)^ExecStart=.*", f"ExecStart={sys.executable}", text))
    done = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert str(unit) not in done.stderr, "a warning about a line of it"
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=30", unit],
        capture_output=True, text=True, check=False,
    )
    assert done.returncode == 0, done.stdout


def test_every_variable_of_the_compose_file_is_in_the_example():
    used = set(re.findall(r"\$\{(\w+)", COMPOSE_FILE.read_text()))
    explained = set(re.findall(r"\w+", (DEPLOYMENTS / "compose" / "example.env").read_text()))
    assert used <= explained


def test_hadolint_finds_nothing_in_the_dockerfile():
    program = shutil.which("hadolint", path=TOOLS)
    if program is None:
        pytest.skip("hadolint is not installed: the Dockerfile is NOT checked")
    done = subprocess.run(
        [program, DEPLOYMENTS / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_servers_image_has_the_versions_that_the_project_asks_for():
    wanted = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    allowed = [
        *wanted["optional-dependencies"]["orchestration"], *wanted["optional-dependencies"]["auth"]
    ]
    dockerfile = (DEPLOYMENTS / "Dockerfile").read_text()
    installed = re.findall(r'"((?:prefect|fastapi|mlflow)[^"]+)"', dockerfile)
    assert len(installed) == 3
    assert set(installed) <= set(allowed)


def test_workers_have_the_compiler_that_triton_runs_bug():
    """Without one, every worker with a GPU died at its first neuron."""
    dockerfile = (DEPLOYMENTS / "Dockerfile").read_text()
    worker = dockerfile[dockerfile.index("FROM base AS worker") :]
    packages = re.search(r"apt-get install (.+?) \\\n", worker).group(1).split()
    assert {"gcc", "libc6-dev"} <= set(packages)


def test_what_the_dockerfile_copies_is_not_ignored():
    kept = [
        line.removeprefix("!") for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    for path in kept:
        assert (REPOSITORY / path).exists(), path
    packages = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    included = packages["tool"]["setuptools"]["packages"]["find"]["include"]
    assert {name.rstrip("*") for name in included} <= set(kept)
