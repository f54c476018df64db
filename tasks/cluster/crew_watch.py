"""Who works for a campaign: lines for those who come, go, die and are left out."""

import contextvars
import logging
import queue
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from distributed import Client

from chess_snn.devices import Device, processor
from chess_snn.types import LogFn
from tasks.cluster.devices import STRIKES, DeviceHealth, UseMeter, WorkerState
from tasks.cluster.identity import differences, resource, tell_identity

_ALL: Final = "all"
"""Dask's topic of workers that come and go."""
_LOOK_PERIOD_S: Final = 2.0
_POLL_S: Final = 0.2
_JOIN_S: Final = 5.0
_PERCENT: Final = 100.0

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Member:
    """A worker that does work for the campaign."""

    name: str
    address: str
    device: str
    """For people; workers of one device have the same."""
    host: str
    """What its machine is called."""
    plays: bool
    trains: bool
    shares_cores: bool
    """Whether its networks run on the processor's cores."""
    host_cores: int = 1
    """Cores of its machine."""
    hardware: Device = field(default_factory=processor)
    """What ``device`` names."""
    gpus: int = 0
    """Of its machine, that train together."""


class CrewWatch:
    """Follows the workers of one scheduler, in a thread of its own."""

    def __init__(self, client: Client, say: LogFn) -> None:
        """Of the scheduler of ``client``; ``say`` takes a line for people."""
        self.client = client
        self._say = say
        self._events: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._members: dict[str, Member] = {}
        self._states: list[WorkerState] = []
        self.use = UseMeter()
        """How busy the devices have been since the watch began."""
        self._signs: dict[str, tuple[float | None, float]] = {}
        self._health = DeviceHealth()

    @property
    def members(self) -> list[Member]:
        """Those that work now."""
        with self._lock:
            return list(self._members.values())

    @property
    def trainers(self) -> list[Member]:
        """Those of them that may train, on devices that are not left out."""
        return [
            member for member in self.members
            if member.trains and member.device not in self._health.retired
        ]

    @property
    def states(self) -> list[WorkerState]:
        """The same, as they were a moment ago."""
        with self._lock:
            return list(self._states)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Watch for the length of the block; whoever is there already is known when it begins."""
        self.client.subscribe_topic(_ALL, lambda event: self._events.put(event[1]))
        for address in self._infos():
            self._meet(address, says_so=False)
        # In a copy of this context: lines are told from that thread, and Prefect keeps the address
        # of its server there.
        run = contextvars.copy_context().run
        thread = threading.Thread(target=run, args=(self._follow,), name="crew", daemon=True)
        thread.start()
        try:
            yield
        finally:
            if self.client.status == "running":
                self.client.unsubscribe_topic(_ALL)
            self._events.put(None)
            thread.join(_JOIN_S)  # it may be asking a worker that is going

    def wait_for_members(self, timeout_s: float) -> bool:
        """Whether somebody works, now or after at most ``timeout_s``."""
        deadline_s = time.monotonic() + timeout_s
        while not self.members and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        return bool(self.members)

    def say(self, line: str) -> None:
        """Tell people of work that only some can do."""
        self._say(line)

    def is_elsewhere_possible(self, tried: set[str]) -> bool:
        """Whether a device is there that is neither retired nor in ``tried``."""
        return bool(self._devices() - self._health.retired - tried)

    def addresses_without(self, devices: set[str]) -> list[str]:
        """Workers of other devices than these."""
        left_out = devices | self._health.retired
        return [member.address for member in self.members if member.device not in left_out]

    def has_any(self, addresses: Collection[str]) -> bool:
        """Whether one of ``addresses`` still works."""
        return any(member.address in addresses for member in self.members)

    def succeeded(self, device: str) -> None:
        """Work was done on ``device``."""
        self._health.succeeded(device)

    def failed(self, device: str, reason: str) -> None:
        """``device`` failed at work that another one did, or its worker died over it."""
        if not self._health.failed(device, self._devices()):
            return
        left = len(self._devices() - self._health.retired)
        self._say(
            f"{device} is retired: it failed {STRIKES} times in a row, the last time by: {reason}; "
            f"{left} other {'device goes' if left == 1 else 'devices go'} on"
        )
        self._dismiss([member for member in self.members if member.device == device])

    def _devices(self) -> set[str]:
        return {member.device for member in self.members}

    def _dismiss(self, members: list[Member]) -> None:
        self.client.retire_workers(
            [member.address for member in members], close_workers=True, remove=True
        )

    def _follow(self) -> None:
        next_look_s = 0.0
        while True:
            try:
                event = self._events.get(timeout=_LOOK_PERIOD_S)
            except queue.Empty:
                event = {}
            if event is None or self.client.status != "running":
                return
            try:
                self._handle(event)
                if time.monotonic() >= next_look_s:
                    self._look()
                    next_look_s = time.monotonic() + _LOOK_PERIOD_S
            except OSError as error:  # the scheduler is away; whoever waits for work says so
                _logger.warning("workers cannot be watched: %s", error)

    def _handle(self, event: dict[str, Any]) -> None:
        address = event.get("worker", "")
        match event.get("action"):
            case "add-worker":
                self._meet(address, says_so=True)
            case "remove-worker":
                self._part(address, event)

    def _meet(self, address: str, *, says_so: bool) -> None:
        """Find out who has come, and whether it can be used."""
        info = self._infos().get(address)
        if info is None:  # gone already
            return
        name = str(info["name"])
        answers = self.client.run(tell_identity, workers=[address], on_error="return")
        told = answers.get(address)
        if not isinstance(told, dict):
            reason = f"it has no chess-snn that can be asked ({told})"
        elif different := differences(told["software"]):
            reason = different
        elif told["fault"]:
            reason = told["fault"]
        elif not {resource("play"), resource("train")} & info["resources"].keys():
            reason = "it offers no device; start it by `chess-snn cluster worker`"
        else:
            reason = ""
        if reason:
            self._say(f"worker {name} is left unused: {reason}")
            return
        member = Member(
            name, address, told["device"], told["host"],
            plays=resource("play") in info["resources"],
            trains=resource("train") in info["resources"], shares_cores=told["shares_cores"],
            host_cores=told["num_cores"],
            hardware=Device(**told["hardware"]),
            gpus=told["gpus"],
        )
        with self._lock:
            self._members[address] = member
        if member.device in self._health.retired:
            self._dismiss([member])
        elif says_so:
            self._say(f"worker {name} is here, on {member.device}")

    def _part(self, address: str, event: dict[str, Any]) -> None:
        with self._lock:
            member = self._members.pop(address, None)
        self._signs.pop(address, None)
        if member is None or member.device in self._health.retired:
            return
        said_good_bye = any(
            told.get("action") == "closing-worker"
            for _, told in self.client.get_events(address) or ()
        )
        if said_good_bye or event.get("expected"):
            self._say(f"worker {member.name} has left")
            return
        # Its nanny reports how its process ended (worker_watch), if its machine is there.
        left = len(self.members)
        self._say(
            f"worker {member.name} is lost; {left} other {'goes' if left == 1 else 'go'} on"
        )
        if event.get("processing-tasks"):
            self.failed(member.device, "its worker died")

    def _look(self) -> None:
        infos, now_s = self._infos(), time.monotonic()
        states = []
        for member in self.members:
            if (info := infos.get(member.address)) is None:
                continue
            # The scheduler's clock may be another than ours: what counts is that its time moves.
            sign, seen_s = self._signs.get(member.address, (None, now_s))
            if info["last_seen"] != sign:
                sign, seen_s = info["last_seen"], now_s
            self._signs[member.address] = sign, seen_s
            states.append(_state(member, now_s - seen_s, info.get("metrics", {})))
        self.use.look(states)
        with self._lock:
            self._states = states

    def _infos(self) -> dict[str, dict[str, Any]]:
        infos: dict[str, dict[str, Any]] = self.client.scheduler_info(-1)["workers"]
        return infos


def _state(member: Member, quiet_s: float, metrics: Mapping[str, Any]) -> WorkerState:
    """What Dask measured of the worker's process and, through NVML, of its GPU."""
    # Without a GPU of its own Dask asks the first one of the machine.
    gpu = {} if member.shares_cores else metrics
    share = gpu.get("gpu_utilization")
    return WorkerState(
        name=member.name, device=member.device, quiet_s=quiet_s,
        cores=metrics.get("cpu", 0.0) / _PERCENT, memory_bytes=int(metrics.get("memory", 0)),
        gpu_share=None if share is None else share / _PERCENT,
        gpu_memory_bytes=gpu.get("gpu_memory_used"),
        gpu_memory_total_bytes=gpu.get("gpu-memory-total"),
        host=member.host, host_cores=member.host_cores, is_on_gpu=not member.shares_cores,
    )
