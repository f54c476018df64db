"""A network that several machines of the cluster train at once, by ranks on each of them.

::

    campaign's process                      workers, one a machine, pinned
      a share to each              ──▶        bring what training reads, and look at it
      waits for them               ◀──        ready, and a port to meet at
      tells each its place         ──▶        torch's agent, and its ranks
      commits what came            ◀──        the generation, where rank 0 was; the others nothing

Until machines are told their places, one that is not ready is left out. From then on they need each
other: where one is lost, the others' ranks are ended, and the task is tried again with whoever is
there then.
"""

import queue
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from distributed import Client, Future, default_client
from distributed.comm import get_address_host

from chess_snn.campaign import CampaignConfig
from chess_snn.campaign.machine.training_ranks import deal_ranks
from chess_snn.errors import ChessSnnError, RankLostError
from chess_snn.training.rank_launch import RankLayout
from tasks import compute
from tasks.cluster.rendezvous import READY_TOPIC, ReadyMachine, choose_machines, tell_place
from tasks.cluster.worker_pool import PoolWorker, WorkerPool
from tasks.placement import received, sent
from tasks.remote import Call, Done, attempt, plain_error

_POLL_S: Final = 0.2
_LEFT_OUT_AFTER_S: Final = 600.0
"""From when the first machine is ready; two campaigns may each hold what the other waits for."""


@dataclass(frozen=True, slots=True)
class SharedTraining:
    """What is to be trained together."""

    config: CampaignConfig
    """How many machines, of which each has how many ranks."""
    generation: int
    share: Call
    """What each machine is asked for, without the last argument, the meeting."""
    alone: Call
    """What one machine is asked for where it is the only one."""


def train_together(training: SharedTraining, crew: WorkerPool) -> Done[Any]:
    """Train and commit a generation on as many machines as are there.

    Args:
        training: which one, and by how many.
        crew: whose machines.

    Returns:
        The facts; as worker and device, the machines that trained.

    Raises:
        RankLostError: a machine was lost meanwhile; names it. Nothing of them is left running.
        StoppedError: the campaign is stopping.
        SchedulerLostError: who tells them what to do is gone.
        ChessSnnError: any that training raises.
    """
    return compute.rebuilding(lambda: _train(training, crew))


def _train(training: SharedTraining, crew: WorkerPool) -> Done[Any]:
    client = default_client()
    try:
        return _train_with(client, training, crew)
    except (ChessSnnError, compute.StoppedError):
        raise
    except Exception:
        # Dask says it in many ways, by where it notices.
        compute.give_up_if_cut_off(client)
        raise


def _train_with(client: Client, training: SharedTraining, crew: WorkerPool) -> Done[Any]:
    wanted = training.config.cluster.training_machines
    most = min(wanted, training.config.training.num_micro_batches)
    machines = choose_machines(crew.trainers, client.processing(), most)
    if len(machines) < wanted:
        names = ", ".join(member.host for member in machines) or "none"
        why = f"; a step has {most} micro-batches" if most < wanted else ""
        crew.say(
            f"generation {training.generation} is to be trained on {wanted} machines, and "
            f"{len(machines)} can: {names}{why}"
        )
    if len(machines) < 2:
        return compute.all_done([training.alone], device=compute.TRAINER)[0]
    return _Party(client, crew, training, machines).train()


@dataclass(slots=True, eq=False)
class _Share:
    """One machine's part."""

    machine: PoolWorker
    future: Future
    port: int = 0
    """Once it is ready."""


class _Party:
    """The machines that train together, from being asked to their end."""

    def __init__(
        self, client: Client, crew: WorkerPool, training: SharedTraining,
        machines: Sequence[PoolWorker],
    ) -> None:
        self._client, self._crew, self._training = client, crew, training
        self._machines = machines
        self._meeting = uuid.uuid4().hex
        self._call: Call = (*training.share, self._meeting)
        self._told: queue.SimpleQueue[ReadyMachine] = queue.SimpleQueue()
        self._shares: list[_Share] = []
        """Of those that were not left out."""
        self._first_error: Exception | None = None

    def train(self) -> Done[Any]:
        """What the machine that has committed returns, under the names of all."""
        futures = []
        self._client.subscribe_topic(READY_TOPIC, lambda event: self._told.put(event[1]))
        try:
            for machine in self._machines:
                futures.append(self._submit(machine))
                self._shares.append(_Share(machine, futures[-1]))
            done = self._gather()
            if done is None:
                self._tell_places()
                done = self._wait_for_end()
            return done
        finally:
            # Whoever runs still notices that, and ends its ranks.
            self._client.cancel([future for future in futures if not future.done()])
            if self._client.status == "running":
                self._client.unsubscribe_topic(READY_TOPIC)

    def _submit(self, machine: PoolWorker) -> Future:
        return self._client.submit(
            attempt, *sent(self._client, self._call),
            key=f"{self._call[0].__name__}-{uuid.uuid4().hex}",
            workers=[machine.address], allow_other_workers=False, pure=False,
            resources={compute.TRAINER: 1},
        )

    def _gather(self) -> Done[Any] | None:
        """Wait for machines to be ready, and leave out those that are not.

        Returns:
            What one returned, where a machine finds the generation trained already.
        """
        last_s: float | None = None
        while any(not share.port for share in self._shares):
            compute.give_up_if_cut_off(self._client)
            if last_s is not None and time.monotonic() > last_s:
                self._leave_out(
                    [share for share in self._shares if not share.port],
                    f"it was not ready {_LEFT_OUT_AFTER_S:.0f} s after the first",
                )
            for share in list(self._shares):
                if share.future.done():
                    done = self._early_end(share)
                    if done is not None:
                        return done
                elif not self._crew.has_any([share.machine.address]):
                    self._leave_out([share], "it has left")
            if self._hear() and last_s is None:
                last_s = time.monotonic() + _LEFT_OUT_AFTER_S
        if not self._shares:
            raise self._first_error or RankLostError(
                f"no machine was ready to train generation {self._training.generation}"
            )
        return None

    def _hear(self) -> bool:
        """Note a machine that says it is ready, for a moment; whether one did."""
        with suppress(queue.Empty):
            told = self._told.get(timeout=_POLL_S)
            if told["meeting"] == self._meeting:
                for share in self._shares:
                    if share.machine.address == told["worker"]:
                        share.port = told["port"]
                        return True
        return False

    def _early_end(self, share: _Share) -> Done[Any] | None:
        """Of a call that ended before its machine was told a place."""
        try:
            return self._result(share)
        except ChessSnnError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever its device or disk came up with
            self._first_error = self._first_error or error
            self._leave_out([share], str(error) or type(error).__name__)
            return None

    def _leave_out(self, shares: Sequence[_Share], reason: str) -> None:
        self._client.cancel([share.future for share in shares if not share.future.done()])
        self._shares = [share for share in self._shares if share not in shares]
        for share in shares:
            self._crew.say(
                f"{share.machine.host} does not train generation {self._training.generation}: "
                f"{reason}"
            )

    def _tell_places(self) -> None:
        for share, layout in zip(self._shares, self._layouts(), strict=True):
            address = share.machine.address
            answers = self._client.run(
                tell_place, self._meeting, layout, workers=[address], on_error="return"
            )
            if answers.get(address) is not True:
                raise self._lost(share)

    def _layouts(self) -> list[RankLayout]:
        ranks = deal_ranks(
            self._training.config, [share.machine.gpus for share in self._shares]
        )
        if len(self._shares) == 1:
            return [RankLayout(ranks[0])]
        hosts = [get_address_host(share.machine.address) for share in self._shares]
        endpoint = f"{hosts[0]}:{self._shares[0].port}"
        return [
            RankLayout(ranks[number], len(hosts), number, endpoint, host)
            for number, host in enumerate(hosts)
        ]

    def _wait_for_end(self) -> Done[Any]:
        running = list(self._shares)
        while running:
            compute.give_up_if_cut_off(self._client)
            for share in list(running):
                if share.future.done():
                    done = self._end(share)
                    if done is not None:
                        return replace(
                            done, worker=self._names(),
                            device=", ".join(each.machine.device for each in self._shares),
                        )
                    running.remove(share)
                elif not self._crew.has_any([share.machine.address]):
                    raise self._lost(share)
            time.sleep(_POLL_S)
        raise RankLostError(
            f"none of {self._names()} has brought generation {self._training.generation}"
        )

    def _end(self, share: _Share) -> Done[Any] | None:
        try:
            return self._result(share)
        except RankLostError as error:
            raise RankLostError(
                f"training on {self._names()} ended on {share.machine.host}: {error}"
            ) from error

    def _result(self, share: _Share) -> Done[Any] | None:
        """Of a call that is done; None where rank 0 was elsewhere."""
        try:
            done: Done[Any] = share.future.result()
        except Exception as error:
            plain = plain_error(error, self._call)
            if plain is None:
                raise
            raise plain from error
        self._crew.succeeded(done.device)
        facts = received(self._call, done.result)
        return None if facts is None else replace(done, result=facts)

    def _lost(self, share: _Share) -> RankLostError:
        return RankLostError(
            f"worker {share.machine.name} was lost while {self._names()} trained generation "
            f"{self._training.generation} together"
        )

    def _names(self) -> str:
        return ", ".join(share.machine.host for share in self._shares)
