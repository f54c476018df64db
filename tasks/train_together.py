"""A network that several machines of the cluster train at once, with ranks on each of them.

Each machine is sent one call, pinned to one of its workers, with its place among the ranks. The
ranks wait for each other at a port of the first machine. If a machine is lost, the task fails, the
calls of the others are cancelled, which ends their ranks, and the task is tried again with the
machines that are there then.
"""

import time
import uuid
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from typing import Any, Final

from distributed import Client, Future, default_client
from distributed.comm import get_address_host

from chess_snn.campaign import CampaignConfig
from chess_snn.campaign.machine.training_launch import deal_ranks
from chess_snn.errors import ChessSnnError, RankLostError
from chess_snn.ports import free_port
from chess_snn.training.rank_launch import RankLayout
from tasks import compute
from tasks.cluster.devices import PoolWorker
from tasks.cluster.worker_pool import WorkerPool
from tasks.remote import Call, Done, attempt, plain_error

_POLL_S: Final = 0.2


def train_together(
    config: CampaignConfig, pool: WorkerPool, generation: int, call: Call
) -> Done[Any]:
    """Train and commit a generation on as many machines as are there.

    Args:
        config: how many machines are wanted, and how many ranks each of them has.
        pool: of the workers.
        generation: to be trained.
        call: for a machine that is the only one; each of several gets its :class:`RankLayout` as
            the last argument instead.

    Returns:
        The facts; as worker and device, the machines that trained.

    Raises:
        RankLostError: a machine was lost meanwhile; names it. None of their ranks is left running.
        StoppedError: the campaign is stopping.
        SchedulerLostError: the scheduler is gone.
        ChessSnnError: any that training raises.
    """
    client = default_client()
    wanted = config.cluster.training_machines
    most = min(wanted, config.training.num_micro_batches)
    machines = choose_machines(pool.trainers, client.processing(), most)
    names = ", ".join(machine.slot.host for machine in machines)
    if len(machines) < wanted:
        why = f"; a step has {most} micro-batches" if most < wanted else ""
        pool.say(
            f"generation {generation} is to be trained on {wanted} machines, and "
            f"{len(machines)} can: {names or 'none'}{why}"
        )
    if len(machines) < 2:
        return compute.all_done([call], device=compute.TRAINER)[0]
    futures: dict[PoolWorker, Future] = {}
    try:
        calls = [(*call[:-1], layout) for layout in _layouts(client, config, machines)]
        for machine, share in zip(machines, calls, strict=True):
            futures[machine] = client.submit(
                attempt, *share, key=f"{share[0].__name__}-{uuid.uuid4().hex}",
                workers=[machine.address], allow_other_workers=False, pure=False,
                resources={compute.TRAINER: 1},
            )
        _wait(client, pool, futures)
        first, *_ = [future.result() for future in futures.values()]
        for machine in machines:
            pool.health.succeeded(machine.device)
        return replace(
            first, worker=names,
            device=", ".join(machine.device for machine in machines),
        )
    except RankLostError as error:
        raise RankLostError(
            f"training generation {generation} on {names} failed: {error}"
        ) from error
    except (ChessSnnError, compute.StoppedError):
        raise
    except Exception as error:
        compute.give_up_if_cut_off(client)  # Dask reports that in many ways
        plain = plain_error(error, call)
        if plain is None:
            raise
        raise plain from error
    finally:
        client.cancel([future for future in futures.values() if not future.done()])


def choose_machines(
    trainers: Sequence[PoolWorker], tasks: Mapping[str, Sized], most: int
) -> list[PoolWorker]:
    """At most ``most`` workers, each on another machine; by the names of these.

    If some have GPUs, only those: ranks on GPUs and on processors exchange in different ways. The
    machines, and the workers of each, that have least to do are taken first.

    Args:
        trainers: workers that may train.
        tasks: what each has to do already, by its address.
        most: >= 1.
    """
    with_gpus = [member for member in trainers if not member.shares_cores]

    def pressure(member: PoolWorker) -> tuple[int, str, str]:
        return len(tasks.get(member.address, ())), member.slot.host, member.name

    by_host: dict[str, PoolWorker] = {}
    for member in sorted(with_gpus or trainers, key=pressure):
        by_host.setdefault(member.slot.host, member)
    chosen = list(by_host.values())[:most]
    return sorted(chosen, key=lambda member: member.slot.host)


def _layouts(
    client: Client, config: CampaignConfig, machines: Sequence[PoolWorker]
) -> list[RankLayout]:
    """The place of each machine's ranks."""
    address = machines[0].address
    port = client.run(free_port, workers=[address])[address]
    endpoint = f"{get_address_host(address)}:{port}"
    ranks = deal_ranks(config, [len(machine.slot.machine_gpus) for machine in machines])
    return [
        RankLayout(number, sum(ranks[:place]), sum(ranks), endpoint)
        for place, number in enumerate(ranks)
    ]


def _wait(client: Client, pool: WorkerPool, futures: Mapping[PoolWorker, Future]) -> None:
    """Wait for the calls of all machines.

    Raises:
        RankLostError: a machine was lost meanwhile.
        Exception: any of a call.
    """
    while not all(future.done() for future in futures.values()):
        compute.give_up_if_cut_off(client)
        for machine, future in futures.items():
            if future.done():
                future.result()
            elif not pool.has_any([machine.address]):
                raise RankLostError(f"worker {machine.name} was lost")
        time.sleep(_POLL_S)
