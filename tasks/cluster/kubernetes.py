"""Workers in pods, by the operator of dask-kubernetes.

Its own client speaks plain TCP to the scheduler. So the resource is made by it, with our commands
and certificates put in, and created and deleted through Kubernetes' API; the campaign, itself a pod
of the cluster, then talks to the scheduler by TLS.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import kr8s
from dask_kubernetes.operator import make_cluster_spec
from kr8s.objects import new_class

from chess_snn.campaign.configuration.cluster_settings import ClusterSettings
from chess_snn.campaign.configuration.execution_settings import ExecutionSettings
from chess_snn.errors import ClusterError
from tasks.cluster.commands import scheduler_words, worker_words

_PORT: Final = 8786
_ALL_ADDRESSES: Final = "0.0.0.0"  # noqa: S104 - of the pod, where TLS asks who is there
_CERTIFICATES: Final = "/certificates"
_CAMPAIGNS: Final = "/data"
_READ_BY_GROUP: Final = 0o440
_USER: Final = 1000
"""Of the image; as a group it may read the secret."""
_PROGRAM: Final = "chess-snn"

_DaskCluster = new_class("DaskCluster", version="kubernetes.dask.org/v1", namespaced=True)


@contextmanager
def kubernetes_cluster(
    name: str, settings: ClusterSettings, execution: ExecutionSettings
) -> Iterator[str]:
    """Have a scheduler and ``settings.jobs`` pods of workers for the block; its address.

    Raises:
        ClusterError: Kubernetes cannot be reached, refuses, or has no Dask operator.
    """
    try:
        resource = _DaskCluster(
            cluster_resource(name, settings, execution), namespace=settings.namespace
        )
        resource.create()
    except (kr8s.APITimeoutError, kr8s.ServerError, kr8s.NotFoundError, OSError) as error:
        raise ClusterError(
            f"Kubernetes did not take the resource DaskCluster {name} in namespace "
            f"{settings.namespace}: {error}; is the Dask operator installed there, and may this "
            "account create such resources?"
        ) from error
    try:
        yield scheduler_address(name, settings)
    finally:
        resource.delete()


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
