"""Workers in pods, by the operator of dask-kubernetes.

Its own client speaks plain TCP to the scheduler. So the resource is made by it, with our commands
and certificates put in, and created and deleted through Kubernetes' API; the campaign, itself a pod
of the cluster, then talks to the scheduler by TLS.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import httpx
import kr8s
from dask_kubernetes.operator import make_cluster_spec
from kr8s.objects import new_class

from chess_snn.campaign.configuration.pace import ClusterSettings, ExecutionSettings
from chess_snn.errors import ClusterError, one_line
from chess_snn.types import LogFn
from tasks.cluster.programs import scheduler_words, worker_words

_PORT: Final = 8786
_ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - of the pod, where TLS asks who is there
_CERTIFICATES: Final = "/certificates"
_CAMPAIGNS: Final = "/data"
_READ_BY_GROUP: Final = 0o440
_USER: Final = 1000
"""Of the image; as a group it may read the secret."""
_PROGRAM: Final = "chess-snn"

_GONE_WITHIN_S: Final = 120.0
"""Of pods that were told to end, for which Kubernetes gives them 30 s."""
_POLL_S: Final = 1.0

_REFUSALS: Final = (
    kr8s.APITimeoutError, kr8s.ServerError, kr8s.NotFoundError, httpx.HTTPError, OSError,
    ValueError,  # no credentials
)


_DaskCluster = new_class("DaskCluster", version="kubernetes.dask.org/v1", namespaced=True)


@contextmanager
def kubernetes_cluster(
    name: str, settings: ClusterSettings, execution: ExecutionSettings, say: LogFn
) -> Iterator[str]:
    """Have a scheduler and ``settings.jobs`` pods of workers for the block; its address.

    Args:
        name: of the resource. The caller holds the lock of the campaign that it is named after, so
            one that exists is a killed run's; it makes room.
        settings: of the cluster.
        execution: how many workers each pod starts, and on what.
        say: is told of what is left of a killed run, and of what stays behind.

    Raises:
        ClusterError: Kubernetes cannot be reached, refuses, or has no Dask operator.
    """
    place = f"DaskCluster {name} in namespace {settings.namespace}"
    wanted = cluster_resource(name, settings, execution)
    try:
        resource = _DaskCluster(wanted, namespace=settings.namespace)
        _create(resource, place, say)
    except _REFUSALS as error:
        raise ClusterError(
            f"Kubernetes did not take the resource {place}: {error}; is the Dask operator "
            "installed there, and may this account create and delete such resources?"
        ) from error
    try:
        yield scheduler_address(name, settings)
    finally:
        try:
            _delete(resource)
        except _REFUSALS as error:
            reason, way_out = one_line(str(error)), _kubectl("delete", resource)
            say(f"{place} is not deleted, and its pods stay: {reason}; {way_out}")


def _create(resource: Any, place: str, say: LogFn) -> None:
    """Create ``resource``, in the stead of one of its name."""
    if _is_created(resource):
        return
    say(f"{place} is left of an earlier run of this campaign; it is deleted and made anew")
    _delete(resource)
    deadline_s = time.monotonic() + _GONE_WITHIN_S
    while not _is_created(resource):
        if time.monotonic() >= deadline_s:
            raise ClusterError(
                f"{place} is left of an earlier run, and not gone {_GONE_WITHIN_S:.0f} s after it "
                "was deleted; is the Dask operator running, and what holds it up? "
                f"{_kubectl('describe', resource)}"
            )
        time.sleep(_POLL_S)


def _is_created(resource: Any) -> bool:
    """Create ``resource`` unless one of its name exists, or is going."""
    try:
        resource.create()
    except kr8s.ServerError as error:
        if isinstance(error.status, dict) and error.status.get("reason") == "AlreadyExists":
            return False
        raise
    return True


def _delete(resource: Any) -> None:
    """Have ``resource`` go when its pods have gone.

    Otherwise the name would be free at once, and the operator, which makes no scheduler where one
    of the name is left, would lose that one a moment later.
    """
    with suppress(kr8s.NotFoundError):
        resource.delete(propagation_policy="Foreground")


def _kubectl(verb: str, resource: Any) -> str:
    return f"kubectl --namespace {resource.namespace} {verb} daskcluster {resource.name}"


def scheduler_address(name: str, settings: ClusterSettings) -> str:
    """Of the service that the operator makes."""
    return f"tls://{name}-scheduler.{settings.namespace}.svc.cluster.local:{_PORT}"


def cluster_resource(
    name: str, settings: ClusterSettings, execution: ExecutionSettings
) -> dict[str, Any]:
    """The resource that the operator makes pods of."""
    resource: dict[str, Any] = make_cluster_spec(
        name, image=settings.image, n_workers=settings.jobs
    )
    scheduler = resource["spec"]["scheduler"]["spec"]
    _fill(scheduler, [_PROGRAM, *scheduler_words(_ALL_ADDRESSES, _PORT, _CERTIFICATES)], settings)
    alive = {"tcpSocket": {"port": "tcp-comm"}, "periodSeconds": 10}
    scheduler["containers"][0] |= {"readinessProbe": alive, "livenessProbe": alive}

    worker = resource["spec"]["worker"]["spec"]
    words = worker_words(scheduler_address(name, settings), execution, _CERTIFICATES)
    _fill(worker, [_PROGRAM, *words], settings)
    wanted = {"cpu": str(settings.job_cores), "memory": f"{settings.job_memory_gib}Gi"}
    if settings.job_gpus:
        wanted["nvidia.com/gpu"] = str(settings.job_gpus)
    worker["containers"][0]["resources"] = {"requests": wanted, "limits": wanted}
    return resource


def _fill(pod: dict[str, Any], command: list[str], settings: ClusterSettings) -> None:
    """Put our command, certificates and campaign folders into the one container of ``pod``."""
    pod["securityContext"] = {"runAsUser": _USER, "runAsNonRoot": True, "fsGroup": _USER}
    container = pod["containers"][0]
    container["args"] = command
    container["env"] = []
    container["resources"] = {}
    secret = {"secretName": settings.certificates_secret, "defaultMode": _READ_BY_GROUP}
    pod["volumes"] = [{"name": "certificates", "secret": secret}]
    container["volumeMounts"] = [
        {"name": "certificates", "mountPath": _CERTIFICATES, "readOnly": True}
    ]
    if settings.volume_claim:
        claim = {"claimName": settings.volume_claim}
        pod["volumes"].append({"name": "campaigns", "persistentVolumeClaim": claim})
        container["volumeMounts"].append({"name": "campaigns", "mountPath": _CAMPAIGNS})
