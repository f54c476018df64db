"""What would be submitted to Slurm and to Kubernetes; neither is here."""

import shlex
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")

from chess_snn.campaign import load_config  # noqa: E402
from tasks.cluster.security import make_certificates, read_certificates  # noqa: E402

SLURM = (
    "cluster.kind=slurm", "cluster.jobs=3", "cluster.job_cores=32", "cluster.job_gpus=4",
    "cluster.job_memory_gib=200", "cluster.job_hours=1.5", "cluster.queue=gpu",
    "cluster.account=chess", 'cluster.directives=["--constraint=h200"]',
    'cluster.setup=["source /shared/venv/bin/activate"]', "execution.workers_per_device=2",
    "execution.gpus=[0,2]",
)
KUBERNETES = (
    "cluster.kind=kubernetes", "cluster.image=registry/chess-snn-worker:0.1.0", "cluster.jobs=5",
    "cluster.job_gpus=1", "cluster.job_cores=8", "cluster.job_memory_gib=64",
    "cluster.certificates_secret=chess-snn-certificates", "cluster.volume_claim=campaigns",
    "cluster.namespace=learning",
)


@pytest.fixture
def certificates(tmp_path):
    make_certificates(tmp_path / "certs")
    return tmp_path / "certs"


@pytest.fixture
def submitted(tmp_path, monkeypatch):
    """A stand-in for sbatch and scancel; what they were given."""
    taken, bin_folder = tmp_path / "jobs", tmp_path / "bin"
    taken.mkdir()
    bin_folder.mkdir()
    for name, text in {
        "sbatch": f'cp "$1" {taken}/$$; echo Submitted batch job $$',
        "scancel": f"echo $1 >> {tmp_path}/cancelled",
    }.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder), prepend=":")
    return taken


def slurm_module():
    if find_spec("dask_jobqueue") is None:  # its own import would take SIGINT
        pytest.skip("dask_jobqueue is not installed")
    return import_module("tasks.cluster.slurm")


def test_ctrl_c_stays_with_the_campaign():
    slurm_module()  # or it is skipped
    # In a process of its own, for an import has its effect once.
    subprocess.run([
        sys.executable, "-c", "import signal; before = signal.getsignal(signal.SIGINT); "
        "import tasks.cluster.slurm; assert signal.getsignal(signal.SIGINT) is before",
    ], check=True)


def test_each_job_of_slurm_starts_the_workers_of_its_machine(certificates, submitted, tmp_path):
    slurm_cluster = slurm_module().slurm_cluster
    config = load_config(settings=[*SLURM, "cluster.host=127.0.0.1"])
    security = read_certificates(certificates)
    with slurm_cluster(
        config.cluster, config.execution, security, str(certificates)
    ) as cluster:
        address = cluster.scheduler_address
        assert address.startswith("tls://127.0.0.1:")
        scripts = [path.read_text() for path in sorted(submitted.iterdir())]
    assert len(scripts) == 3
    lines = scripts[0].splitlines()
    assert lines[0].startswith("#!")
    assert {line for line in lines if line.startswith("#SBATCH")} == {
        "#SBATCH -J chess-snn", "#SBATCH -p gpu", "#SBATCH -A chess", "#SBATCH -n 1",
        "#SBATCH --cpus-per-task=32", "#SBATCH --mem=200G", "#SBATCH -t 01:30:00",
        "#SBATCH --gpus-per-node=4", "#SBATCH --constraint=h200",
    }
    assert "source /shared/venv/bin/activate" in lines
    assert shlex.split(lines[-1]) == [
        sys.executable, "-m", "chess_snn", "cluster", "worker", address,
        "--certificates", str(certificates), "--device", "auto", "--self-play-device", "same",
        "--patience-s", "60", "--gpus", "0,2", "--workers-per-device", "2",
    ]
    assert subprocess.run(["bash", "-n"], input=scripts[0], text=True, check=False).returncode == 0
    cancelled = (tmp_path / "cancelled").read_text().split()
    assert sorted(cancelled) == sorted(path.name for path in submitted.iterdir())


def test_what_sbatch_refuses_is_raised(certificates, submitted, tmp_path):
    slurm_cluster = slurm_module().slurm_cluster
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho invalid partition >&2; exit 1\n")
    config = load_config(settings=[*SLURM, "cluster.host=127.0.0.1"])
    with pytest.raises(RuntimeError, match="invalid partition"):
        slurm_cluster(
            config.cluster, config.execution, read_certificates(certificates), str(certificates)
        )
    assert not list(submitted.iterdir())


def test_pods_have_our_commands_certificates_and_devices():
    pytest.importorskip("dask_kubernetes")
    cluster_resource = import_module("tasks.cluster.kubernetes").cluster_resource
    config = load_config(settings=[*KUBERNETES])
    resource = cluster_resource("chess-snn-1a2b", config.cluster, config.execution)
    assert resource["kind"] == "DaskCluster"
    assert resource["spec"]["worker"]["replicas"] == 5
    (scheduler,) = resource["spec"]["scheduler"]["spec"]["containers"]
    assert scheduler["args"] == [
        "chess-snn", "cluster", "scheduler", "--host", "0.0.0.0", "--port", "8786",
        "--certificates", "/certificates",
    ]
    (worker,) = resource["spec"]["worker"]["spec"]["containers"]
    assert worker["args"][:6] == [
        "chess-snn", "cluster", "worker",
        "tls://chess-snn-1a2b-scheduler.learning.svc.cluster.local:8786",
        "--certificates", "/certificates",
    ]
    wanted = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    assert worker["resources"] == {"requests": wanted, "limits": wanted}
    assert {mount["mountPath"] for mount in worker["volumeMounts"]} == {"/certificates", "/data"}


@pytest.mark.parametrize("part", ["scheduler", "worker"])
def test_kubernetes_own_schema_takes_the_pods_and_the_service(part):
    pytest.importorskip("dask_kubernetes")
    validator = pytest.importorskip("kubernetes_validate")
    cluster_resource = import_module("tasks.cluster.kubernetes").cluster_resource
    config = load_config(settings=[*KUBERNETES])
    spec = cluster_resource("chess-snn-1a2b", config.cluster, config.execution)["spec"][part]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": part}, "spec": spec["spec"]}
    validator.validate(pod, "1.34", strict=True)
    if part == "scheduler":
        validator.validate({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": part},
            "spec": spec["service"],
        }, "1.34", strict=True)
    pod["spec"]["containers"][0]["args"] = "no list"
    with pytest.raises(validator.ValidationError):
        validator.validate(pod, "1.34", strict=True)
