"""The workers of a campaign: which ones join, leave, die, freeze or fail, and how busy they are.

Dask has its own time-to-live for workers, measured by the wall clock: if that is put forward, every
worker is suddenly silent, and all are ended. Here silence is added up from one look to the next, by
the monotonic clock, and a look that comes late counts little: a laptop that slept has not seen its
workers freeze.
"""

import contextvars
import queue
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from distributed import Client

from chess_snn import processes
from chess_snn.campaign import CampaignFolder
from chess_snn.campaign.machine.slots import WorkerSlot
from chess_snn.campaign.store.typed_json import from_json
from chess_snn.campaign.viewing.events import WorkerProgress
from chess_snn.tasks.cluster.devices import STRIKES, DeviceHealth, PoolWorker, UseTotals
from chess_snn.tasks.cluster.identity import IDENTITY, differences
from chess_snn.tasks.cluster.nannies import EXIT_TOPIC
from chess_snn.tasks.remote import folder_fault
from chess_snn.types import Json, LogFn

FROZEN_AFTER_S: Final = 60.0
"""On a busy machine a worker may be silent for half of it while it loads kernels."""
LOOK_EVERY_S: Final = 1.0

_MOST_ADDED_S: Final = 3 * LOOK_EVERY_S
"""Most silence that one look can add, should it come late."""
_RESTART_TIMEOUT_S: Final = 30.0
_ANSWER_TIMEOUT_S: Final = 30.0
"""Time for a worker's look at the campaign folder; it hangs if the folder's server is away."""
_POLL_S: Final = 0.2
_JOIN_S: Final = 5.0
_PERCENT: Final = 100.0
_REDONE: Final = "what it was doing is done again"


class SilenceLog:
    """How long each worker has been silent, from looks at the scheduler's list of them."""

    def __init__(self) -> None:
        self.silent_s: dict[str, float] = {}
        """Seconds of silence by address."""
        self._last_seen: dict[str, float] = {}
        self._looked_s: float | None = None

    def look(self, last_seen: Mapping[str, float], now_s: float) -> None:
        """Note what the scheduler says at ``now_s`` of a monotonic clock.

        Args:
            last_seen: by address, from the scheduler's clock; only whether it changes counts.
            now_s: time of the look.
        """
        passed_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, _MOST_ADDED_S)
        self._looked_s = now_s
        self.silent_s = {
            address: self.silent_s[address] + passed_s
            if self._last_seen.get(address) == seen else 0.0
            for address, seen in last_seen.items()
        }
        self._last_seen = dict(last_seen)


class WorkerPool:
    """The workers of one scheduler, followed in a thread of its own."""

    def __init__(
        self, client: Client, say: LogFn, *, frozen_after_s: float = FROZEN_AFTER_S,
        num_own_workers: int = 0, shared: CampaignFolder | None = None,
    ) -> None:
        """The workers of the scheduler of ``client``; ``say`` takes a line for people.

        One that is silent for ``frozen_after_s`` is killed and started again. This process starts,
        and restarts, ``num_own_workers``. Those of other machines must see the folder ``shared``;
        one that does not is dismissed.
        """
        self.client, self.say = client, say
        self.use = UseTotals()
        """How busy the devices have been since the pool was first followed."""
        self.dismissals: list[str] = []
        """Why workers that do not see the campaign folder were dismissed."""
        self._frozen_after_s, self._num_own_workers = frozen_after_s, num_own_workers
        self._shared = shared
        self._exits: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self.states: list[WorkerProgress] = []
        """The workers as they were at the last look, without their work for the campaign."""
        self.health = DeviceHealth()
        self._met: set[str] = set()
        """Addresses of all workers of the scheduler, used or not."""
        self._workers: dict[str, PoolWorker] = {}
        """Workers by address; replaced and never changed, since several threads read it."""
        self._silence = SilenceLog()

    @property
    def workers(self) -> list[PoolWorker]:
        """Those that work now."""
        return list(self._workers.values())

    @property
    def num_workers(self) -> int:
        """How many work, >= 1 even while all of them are away.

        Own workers count also while they start again.
        """
        return max(1, self._num_own_workers, len(self._workers))

    @property
    def addresses(self) -> list[str]:
        """Addresses of all workers that are there."""
        return [worker.address for worker in self.workers]

    @property
    def shares_cores(self) -> bool:
        """Whether workers compute on the cores that training wants all of."""
        return any(worker.shares_cores for worker in self.workers)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Follow the workers for the length of the block; those that are there begin it."""
        self.client.subscribe_topic(EXIT_TOPIC, lambda event: self._exits.put(event[1]))
        self._look(says_so=False)
        # Runs in a copy of this context: lines are told from that thread, and Prefect keeps the
        # address of its server there.
        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(self._follow,), name="workers", daemon=True)
        thread.start()
        try:
            yield
        finally:
            if self.client.status == "running":
                self.client.unsubscribe_topic(EXIT_TOPIC)
            self._exits.put(None)
            thread.join(_JOIN_S)  # it may be asking the scheduler

    def wait_for_workers(self, timeout_s: float) -> bool:
        """Whether a worker is there after at most ``timeout_s``, or at the first dismissal."""
        deadline_s = time.monotonic() + timeout_s
        while not self.workers and not self.dismissals and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        return bool(self.workers)

    def addresses_without(self, device: str) -> list[str]:
        """Workers of other devices that are not retired."""
        left_out = {device} | self.health.retired
        return [worker.address for worker in self.workers if worker.device not in left_out]

    def has_any(self, addresses: Collection[str]) -> bool:
        """Whether one of ``addresses`` still works."""
        return any(worker.address in addresses for worker in self.workers)

    def failed(self, device: str, reason: str) -> None:
        """``device`` failed at work that another one did, or its worker died over it."""
        if not self.health.failed(device, self._devices()):
            return
        left = len(self._devices() - self.health.retired)
        self.say(
            f"{device} is retired: it failed {STRIKES} times in a row, the last time by: {reason}; "
            f"{left} other {'device goes' if left == 1 else 'devices go'} on"
        )
        self._dismiss([worker.address for worker in self.workers if worker.device == device])

    def _devices(self) -> set[str]:
        return {worker.device for worker in self.workers}

    def _dismiss(self, addresses: list[str]) -> None:
        # The reason that a nanny gets tells it to stay away; with `remove` it gets another one.
        self.client.retire_workers(addresses, close_workers=True, remove=False)

    def _follow(self) -> None:
        next_look_s = 0.0
        while True:
            try:
                exited = self._exits.get(timeout=LOOK_EVERY_S)
            except queue.Empty:
                exited = {}
            if exited is None or self.client.status != "running":
                return
            try:
                if exited:
                    self.say(describe_exit(exited))
                if time.monotonic() >= next_look_s:
                    self._look(says_so=True)
                    next_look_s = time.monotonic() + LOOK_EVERY_S
            except Exception as error:  # noqa: BLE001 - without this thread, frozen workers stay
                self._report(error)

    def _look(self, *, says_so: bool) -> None:
        """Meet new workers, end frozen ones, and note what each is doing."""
        # Not by `scheduler_info`: what it returns may be replaced meanwhile by a list cut short.
        identity = self.client.sync(self.client.scheduler.identity, n_workers=-1)
        infos: dict[str, dict[str, Any]] = identity["workers"]
        for worker in self.workers:
            if worker.address not in infos:
                self._part(worker)
        for address in infos.keys() - self._met:
            self._meet(address, infos[address], says_so=says_so)
        self._met = set(infos)
        workers = [worker for worker in self.workers if worker.address in infos]
        self._silence.look(
            {worker.address: infos[worker.address]["last_seen"] for worker in workers},
            time.monotonic(),
        )
        silent_s = self._silence.silent_s
        states = [
            _state(worker, silent_s[worker.address], infos[worker.address].get("metrics", {}))
            for worker in workers
        ]
        self.use = self.use.after(list(zip(workers, states, strict=True)))
        self.states = states
        for worker in workers:
            if silent_s[worker.address] >= self._frozen_after_s:
                silent_s[worker.address] = 0.0
                self._restart(worker)

    def _meet(self, address: str, info: Mapping[str, Any], *, says_so: bool) -> None:
        """Find out which worker has come, and whether it can be used."""
        told: Json | None = info.get(IDENTITY)
        if told is None:
            reason = "it offers no device; start it by `chess-snn cluster worker`"
        else:
            reason = differences(told["software"]) or told["fault"]
        if told is None or reason:
            self.say(f"worker {info['name']} is left unused: {reason}")
            return
        if reason := self._folder_fault(address):
            self.dismissals.append(f"worker {info['name']} is dismissed: {reason}")
            self.say(self.dismissals[-1])
            self._dismiss([address])
            return
        worker = PoolWorker(address, from_json(WorkerSlot, told["place"]), told["num_cores"])
        self._workers = self._workers | {address: worker}
        if worker.device in self.health.retired:
            self._dismiss([address])
        elif says_so:
            self.say(f"worker {worker.name} is here, on {worker.device}")

    def _folder_fault(self, address: str) -> str:
        """Say why a worker cannot use the campaign folder; empty if it can, or need not."""
        if self._shared is None:
            return ""
        path = str(self._shared.path)
        try:
            answer = self.client.sync(
                self.client._run, folder_fault, path, self._shared.campaign_id, workers=[address],
                on_error="return", callback_timeout=_ANSWER_TIMEOUT_S,
            )[address]
        except TimeoutError:
            answer = f"it does not say within {_ANSWER_TIMEOUT_S:g} s whether it sees {path}"
        return str(answer)

    def _part(self, worker: PoolWorker) -> None:
        """Say whether a worker that the scheduler lists no more has left or is lost."""
        self._workers = {a: each for a, each in self._workers.items() if a != worker.address}
        if worker.device in self.health.retired:
            return
        events = [event for _, event in self.client.get_events(worker.address) or ()]
        removals = [event for event in events if event.get("action") == "remove-worker"]
        removal = removals[0] if removals else {}
        said_good_bye = any(e.get("action") == "closing-worker" for e in events)
        if said_good_bye or removal.get("expected"):
            self.say(f"worker {worker.name} has left")
            return
        # Its nanny reports how its process ended, if its machine is there.
        left = len(self.workers)
        self.say(
            f"worker {worker.name} is lost; {left} other {'goes' if left == 1 else 'go'} on"
        )
        if removal.get("processing-tasks"):
            self.failed(worker.device, "its worker died")

    def _restart(self, worker: PoolWorker) -> None:
        """Have the nanny of a frozen worker kill it; others are looked at meanwhile."""

        def restart() -> None:
            try:
                self.client.restart_workers(
                    [worker.address], timeout=_RESTART_TIMEOUT_S, raise_for_error=False
                )
            except Exception as error:  # noqa: BLE001 - without this thread, frozen workers stay
                self._report(error)

        self.say(
            f"worker {worker.name} has said nothing for {self._frozen_after_s:g} s: it is killed, "
            f"and {_REDONE}"
        )
        run = contextvars.copy_context().run
        threading.Thread(target=run, args=(restart,), name="restart", daemon=True).start()

    def _report(self, error: Exception) -> None:
        if self.client.status == "running":
            self.say(f"cannot look after the workers ({error!r}); trying again")


def describe_exit(event: Mapping[str, Any]) -> str:
    """One line for people on the end of a worker's process, from an event of ``EXIT_TOPIC``."""
    how = processes.describe_exit(int(event["exit_code"]))
    if event["is_over_budget"]:
        how += " because it took over 95 % of its share of the machine's memory"
    elif event["oom_kills"]:
        how += "; the machine is out of memory, and the kernel ended it or another (oom_kill)"
    return f"worker {event['worker']} {how}; another is started, and {_REDONE}"


def _state(worker: PoolWorker, quiet_s: float, metrics: Mapping[str, Any]) -> WorkerProgress:
    """Measurements by Dask of the worker's process and, through NVML, of its GPU."""
    # Without a GPU of its own Dask asks the first one of the machine.
    gpu = {} if worker.shares_cores else metrics
    share = gpu.get("gpu_utilization")
    return WorkerProgress(
        worker.name, worker.device, doing="", games=0, games_per_s=0.0, quiet_s=quiet_s,
        cores=metrics.get("cpu", 0.0) / _PERCENT, memory_bytes=int(metrics.get("memory", 0)),
        gpu_share=None if share is None else share / _PERCENT,
        gpu_memory_bytes=gpu.get("gpu_memory_used"),
        gpu_memory_total_bytes=gpu.get("gpu-memory-total"),
    )
