"""Workers in jobs of Slurm, by dask-jobqueue: the scheduler here, a job for each machine."""

import shlex
import sys
from typing import Any, Final

from distributed import Security
from distributed.core import Status

from chess_snn.campaign.configuration.pace import ClusterSettings, ExecutionSettings
from chess_snn.interrupts import interrupt_kept
from tasks.cluster.nannies import ANY_LOOPBACK_PORT
from tasks.cluster.programs import worker_words

with interrupt_kept():  # its import has Ctrl-C end the process where it stands
    from dask_jobqueue import SLURMCluster
    from dask_jobqueue.slurm import SLURMJob

_JOB_NAME: Final = "chess-snn"
_S_PER_HOUR: Final = 3600


class WorkerJob(SLURMJob):  # type: ignore[misc]  # dask-jobqueue has no types
    """A job that starts the workers of the machine that it gets."""

    def __init__(
        self, *args: Any, execution: ExecutionSettings, certificates: str, **kwargs: Any
    ) -> None:
        """As of the base class, with what `chess-snn cluster worker` needs to know."""
        super().__init__(*args, **kwargs)
        words = worker_words(self.scheduler, execution, certificates)
        self._command_template = shlex.join([sys.executable, "-m", "chess_snn", *words])

    async def start(self) -> None:
        """As of the base class; a job that is refused lets the others be closed."""
        try:
            await super().start()
        except RuntimeError:
            self.status = Status.failed
            raise


def slurm_cluster(
    settings: ClusterSettings, execution: ExecutionSettings, security: Security, certificates: str
) -> SLURMCluster:
    """A scheduler on this machine, and as many jobs submitted to Slurm as ``settings`` want.

    Args:
        settings: of the cluster.
        execution: how many workers each job starts, and on what.
        security: of this process.
        certificates: the folder that it was read from, which nodes see too.

    Raises:
        RuntimeError: sbatch refuses; ends with what it says.
    """
    scheduler: dict[str, Any] = {"port": 0, "dashboard_address": ANY_LOOPBACK_PORT}
    if settings.host:
        scheduler["host"] = settings.host
    cluster = SLURMCluster(
        scheduler_options=scheduler, security=security, job_cls=WorkerJob,
        execution=execution, certificates=certificates,
        job_name=_JOB_NAME, cores=settings.job_cores, processes=1,
        memory=f"{settings.job_memory_gib}GiB", walltime=_walltime(settings.job_hours),
        queue=settings.queue or None, account=settings.account or None,
        job_extra_directives=_directives(settings), job_script_prologue=list(settings.setup),
    )

    async def submit() -> None:
        cluster.scale(jobs=settings.jobs)
        await cluster._correct_state()  # so that what sbatch says is raised here

    try:
        cluster.sync(submit)
    except BaseException:
        cluster.close()
        raise
    return cluster


def _directives(settings: ClusterSettings) -> list[str]:
    gpus = [f"--gpus-per-node={settings.job_gpus}"] if settings.job_gpus else []
    return [*gpus, *settings.directives]


def _walltime(hours: float) -> str:
    """As Slurm writes it: ``12:00:00``."""
    minutes, seconds = divmod(round(hours * _S_PER_HOUR), 60)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}"
