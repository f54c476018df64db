"""Kubernetes manifests: put together by kubectl, held against Kubernetes' own schemas."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from chess_snn.processes import KILL_TIMEOUT_S

MANIFESTS = Path(__file__).parents[2] / "deployments" / "kubernetes"
KUBERNETES_VERSION = "1.30"


@pytest.fixture(params=["base", "gpu"])
def objects(request, tmp_path):
    """What `kubectl apply -k` would send."""
    if not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed: the Kubernetes manifests are NOT checked")
    folder = tmp_path / "kubernetes"
    shutil.copytree(MANIFESTS, folder)
    example = (folder / "base" / "credentials.env.example").read_text()
    (folder / "base" / "credentials.env").write_text(example)
    done = subprocess.run(
        ["kubectl", "kustomize", folder / request.param], capture_output=True, text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_the_pods_of_workers_are_valid_and_not_root():
    items = list(yaml.safe_load_all((MANIFESTS / "workers.yaml").read_text()))
    assert set(pods(items)) == {"scheduler", "workers"}
    test_no_container_is_root_or_can_become_it(items)
    validator = pytest.importorskip("kubernetes_validate")
    for item in items:
        validator.validate(item, KUBERNETES_VERSION, strict=True)


def pods(objects):
    return {
        item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in objects
        if item["kind"] in ("Deployment", "StatefulSet")
    }


def test_every_object_is_valid_by_kubernetes_own_schema(objects):
    validator = pytest.importorskip(
        "kubernetes_validate",
        reason="kubernetes-validate is not installed: manifests are NOT held against schemas",
    )
    for item in objects:
        validator.validate(item, KUBERNETES_VERSION, strict=True)


def test_nothing_that_is_referred_to_is_missing(objects):
    names = {(item["kind"], item["metadata"]["name"]) for item in objects}
    assert {item["metadata"].get("namespace", "chess-snn") for item in objects} == {"chess-snn"}
    secret = next(item for item in objects if item["kind"] == "Secret")
    for pod in pods(objects).values():
        for volume in pod.get("volumes", ()):
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in names
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in names
        volumes = {volume["name"] for volume in pod.get("volumes", ())}
        for container in [*pod.get("initContainers", ()), *pod["containers"]]:
            assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes
            for variable in container.get("env", ()):
                reference = variable.get("valueFrom", {}).get("secretKeyRef")
                if reference:
                    assert reference["name"] == secret["metadata"]["name"]
                    assert reference["key"] in secret["data"]


def test_a_service_leads_to_each_server_and_its_port(objects):
    found = pods(objects)
    for service in (item for item in objects if item["kind"] == "Service"):
        container = found[service["spec"]["selector"]["app"]]["containers"][0]
        assert service["spec"]["ports"][0]["port"] == container["ports"][0]["containerPort"]
        assert service["spec"].get("type", "ClusterIP") == "ClusterIP", "reached by nobody outside"


def test_no_container_is_root_or_can_become_it(objects):
    for pod in pods(objects).values():
        assert pod["securityContext"]["runAsNonRoot"]
        for container in [*pod.get("initContainers", ()), *pod["containers"]]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]


def test_a_worker_has_longer_to_end_than_its_guard_takes(objects):
    services = pytest.importorskip("flows.services")
    grace_s = pods(objects)["worker"]["terminationGracePeriodSeconds"]
    assert grace_s > services.WORKER_GRACE_S + KILL_TIMEOUT_S


def test_the_overlay_for_gpus_asks_for_them(objects, request):
    limits = pods(objects)["worker"]["containers"][0]["resources"]["limits"]
    assert ("nvidia.com/gpu" in limits) == (request.node.callspec.id == "gpu")


# Slurm batch files: read by bash, and run with a stand-in for Slurm's and our own command.


SLURM = Path(__file__).parents[2] / "deployments" / "slurm"
SCRIPTS = sorted(SLURM.glob("*.sbatch"))

TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
"""Where linters are: `make setup` puts them beside Python."""

CHESS_SNN = """#!/bin/bash
echo "chess-snn $*" >> "$CALLS"
[[ $1 == doctor ]] && exit "${DOCTOR_CODE:-0}"
trap 'echo told >> "$CALLS"; exit 130' TERM
touch "$RUNNING"
for _ in $(seq "${STEPS:-1}"); do sleep 0.05; done
exit "${CODE:-0}"
"""


class Node:
    """A machine on which a job's script is run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root / "calls"
        bin_folder = root / "environment" / "bin"
        bin_folder.mkdir(parents=True)
        self._program(bin_folder / "chess-snn", CHESS_SNN)
        self._program(bin_folder / "scontrol", '#!/bin/bash\necho "scontrol $*" >> "$CALLS"\n')
        (bin_folder / "activate").write_text(f'PATH="{bin_folder}:$PATH"\n')

    def start(self, script: str, *arguments: object, **environment: str) -> subprocess.Popen:
        return subprocess.Popen(
            ["bash", SLURM / script, *map(str, arguments)], stdout=subprocess.PIPE, text=True,
            env=os.environ | {
                "CHESS_SNN_ENVIRONMENT": str(self.root / "environment"), "SLURM_JOB_ID": "4711",
                "CALLS": str(self.calls), "RUNNING": str(self.root / "running"), **environment,
            },
        )

    def wait_until_running(self) -> None:
        deadline = time.monotonic() + 30
        while not (self.root / "running").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def said(self) -> list[str]:
        return self.calls.read_text().splitlines()

    @staticmethod
    def _program(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_bash_and_shellcheck_find_nothing(script):
    checked = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    program = shutil.which("shellcheck", path=TOOLS)
    if program is None:
        pytest.skip("shellcheck is not installed: bash -n alone has read it")
    linted = subprocess.run([program, script], capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_slurm_takes_it(script):
    if not shutil.which("sbatch"):
        pytest.skip("sbatch is not installed: Slurm has NOT read the batch files")
    done = subprocess.run(
        ["sbatch", "--test-only", script, "/tmp/campaign"], capture_output=True, text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_campaign_is_started_after_a_look_at_the_machine(node, tmp_path):
    directory = tmp_path / "campaign"
    job = node.start("campaign.sbatch", directory, "smoke", "campaign.iterations=2")
    assert job.wait(30) == 0
    assert node.said() == [
        "chess-snn doctor",
        f"chess-snn campaign start --dir {directory} --preset smoke --set campaign.iterations=2",
    ]


def test_a_campaign_that_exists_is_gone_on_with(node, tmp_path):
    (tmp_path / "campaign.toml").touch()
    assert node.start("campaign.sbatch", tmp_path).wait(30) == 0
    assert node.said() == [f"chess-snn campaign resume {tmp_path}"]


def test_a_broken_machine_starts_nothing(node, tmp_path):
    assert node.start("campaign.sbatch", tmp_path / "c", DOCTOR_CODE="1").wait(30) == 1
    assert node.said() == ["chess-snn doctor"]


def test_a_campaign_that_fails_fails_the_job(node, tmp_path):
    assert node.start("campaign.sbatch", tmp_path / "c", CODE="2").wait(30) == 2


def test_before_its_time_is_over_it_stops_the_campaign_and_queues_itself_again(node, tmp_path):
    (tmp_path / "campaign.toml").touch()
    job = node.start("campaign.sbatch", tmp_path, STEPS="600")
    node.wait_until_running()
    job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 0
    assert node.said()[1:] == ["told", "scontrol requeue 4711"]


def test_without_a_directory_it_says_how_it_is_used(node):
    done = subprocess.run(
        ["bash", SLURM / "campaign.sbatch"], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "usage: sbatch campaign.sbatch DIRECTORY" in done.stderr
    assert not node.calls.exists()


def test_workers_join_the_scheduler_with_their_options(node):
    job = node.start("workers.sbatch", "tls://login:8786", "/shared/certs", "--gpus", "0,1")
    assert job.wait(30) == 0
    assert node.said() == [
        "chess-snn cluster worker tls://login:8786 --certificates /shared/certs --patience-s 60 "
        "--gpus 0,1",
    ]


def test_services_run_until_the_job_ends_on_ports_of_their_own(node):
    job = node.start("services.sbatch", STEPS="600")
    node.wait_until_running()
    job.send_signal(signal.SIGTERM)
    assert job.wait(30) == 130
    assert node.said() == [
        "chess-snn up --foreground --prefect-port 24711 --mlflow-port 34711", "told",
    ]
    assert "ssh -L 24711:127.0.0.1:24711 -L 34711:127.0.0.1:34711" in job.stdout.read()
