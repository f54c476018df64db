"""Kubernetes manifests: put together by kubectl, held against Kubernetes' own schemas."""

import shutil
import subprocess
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
