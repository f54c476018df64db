"""The processes that train one network together, and all that passes between them.

:func:`chess_snn.training.rank_launch.run_ranks` starts them, or ``torchrun``. The ranks have the
same network and draw the same samples; they differ in which micro-batches each of them computes.
So all they exchange is one vector a step, summed.

They meet at a store of torch's before each exchange, which names a rank that does not come: an
exchange of torch that times out names none, and one of NCCL may never return.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from chess_snn.devices import Backend
from chess_snn.errors import ChessSnnError, RankLostError, UsageError
from chess_snn.known import TIMEOUT_S
from chess_snn.later import torch
from chess_snn.training.settings import TrainingSettings

if TYPE_CHECKING:
    from torch.distributed import Store  # type: ignore[attr-defined]

LINE: Final = "line"
"""Key of the store: the last line for people, from rank 0."""
STEPS: Final = "steps"
"""Key of the store: ``"120 3000"``, the steps done and all steps, from rank 0."""

_NAMED_FIRST: Final = 2.0
"""torch's own timeout, which names no rank, is this many times ours."""
_PLACE: Final = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


@dataclass(frozen=True, slots=True)
class Division:
    """The positions of one step, dealt out to ranks in runs of whole micro-batches.

    A step's batch has the same micro-batches whatever the number of ranks, so a division changes
    who computes, and not what is learnt.
    """

    batch_size: int
    micro_batch: int
    counts: tuple[int, ...]
    """Micro-batches of each rank, at least one."""

    def positions(self, rank: int) -> slice:
        """The part of the batch that ``rank`` computes."""
        first = sum(self.counts[:rank]) * self.micro_batch
        return slice(first, min(self.batch_size, first + self.counts[rank] * self.micro_batch))


def divide(settings: TrainingSettings, num_ranks: int) -> Division:
    """Deal the micro-batches of a step evenly to ranks; the first ones take what is left over.

    Raises:
        UsageError: there are more ranks than micro-batches.
    """
    num_parts = settings.num_micro_batches
    if num_ranks > num_parts:
        raise UsageError(
            f"{num_ranks} ranks cannot share a step of {num_parts} micro-batches "
            f"(training.batch_size = {settings.batch_size}, training.micro_batch = "
            f"{settings.micro_batch}); use fewer ranks, or set training.micro_batch to "
            f"{max(2, settings.batch_size // num_ranks)} or less"
        )
    counts = tuple((num_parts + num_ranks - 1 - rank) // num_ranks for rank in range(num_ranks))
    return Division(settings.batch_size, settings.micro_batch, counts)


def error_key(rank: int) -> str:
    """Key of the store: the type and the text of the error that ended ``rank``, as JSON."""
    return f"error/{rank}"


@dataclass(frozen=True, slots=True)
class RankInfo:
    """Facts that the launcher tells a rank."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """Number among the ranks of this machine, from 0."""
    local_size: int = 1

    @classmethod
    def from_environment(cls) -> RankInfo:
        """The place of this process, which is alone if it was not launched as a rank.

        Raises:
            UsageError: a variable of torchrun is missing or not a number.
        """
        if "RANK" not in os.environ:
            return cls()
        for name in _PLACE:
            if not (text := os.environ.get(name, "")).isdecimal():
                raise UsageError(
                    f"RANK is set, so this process is one of several ranks, but {name} = {text!r} "
                    "is not a number; start ranks with torchrun"
                )
        return cls(*(int(os.environ[name]) for name in _PLACE))


class Ranks:
    """The processes that train together, made by :func:`joined_ranks`; ``ALONE`` is a single one.

    A process alone exchanges nothing and waits for no other.
    """

    def __init__(
        self, info: RankInfo = RankInfo(), store: Store | None = None, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Meet the other ranks at ``store``, which a process alone does not need."""
        self.rank, self.size, self.local_rank = info.rank, info.size, info.local_rank
        self._store, self._timeout_s = store, timeout_s
        self._num_met = 0
        self._names = [f"rank {rank}" for rank in range(info.size)]
        if store is not None:
            self._names = self._gather(
                store, f"rank {info.rank} (process {os.getpid()} on {socket.gethostname()})"
            )

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which alone prints, logs and saves."""
        return self.rank == 0

    def add_up(self, vector: torch.Tensor) -> None:
        """Replace ``vector`` by its sum over all ranks, the same bits on each.

        On a GPU it returns when the sum is under way.

        Raises:
            RankLostError: a rank died or froze; names it where that is known.
        """
        if self._store is None:
            return
        self._gather(self._store)
        try:
            torch.distributed.all_reduce(vector)
        except RuntimeError as error:
            raise RankLostError(f"a rank was lost in an exchange: {error}") from error

    def agree(self, facts: Mapping[str, str]) -> None:
        """Check that all ranks have the same ``facts``.

        Raises:
            UsageError: a rank has others than rank 0; names it, and the first fact that differs.
            RankLostError: a rank did not come; names it.
        """
        if self._store is None:
            return
        wanted, *others = map(json.loads, self._gather(self._store, json.dumps(dict(facts))))
        for other, told in zip(self._names[1:], others, strict=True):
            for name, value in wanted.items():
                if told.get(name) != value:
                    raise UsageError(
                        f"{other} has {name} = {told.get(name)}, and {self._names[0]} has {value}; "
                        "all ranks need the same campaign folder, settings and version"
                    )

    def tell(self, key: str, text: str) -> None:
        """Set ``key`` of the store, where the launcher reads it."""
        if self._store is not None:
            self._store.set(key, text)

    def _gather(self, store: Store, text: str = "") -> list[str]:
        """Wait for all ranks; the texts that they gather, in their order.

        Raises:
            RankLostError: a rank did not come in time; names it.
        """
        self._num_met += 1
        keys = [f"{self._num_met}/{rank}" for rank in range(self.size)]
        try:
            store.set(keys[self.rank], text)
            self._wait(store, keys)
            # All ranks are here, so that none reads the texts before these any more.
            store.delete_key(f"{self._num_met - 1}/{self.rank}")
            return [told.decode() for told in store.multi_get(keys)]
        except RuntimeError as error:  # the type of all errors of a store
            raise RankLostError(
                f"the store that ranks meet at does not answer ({error}); its machine, the first "
                "one, is down or cut off"
            ) from error

    def _wait(self, store: Store, keys: list[str]) -> None:
        try:
            store.wait(keys, timedelta(seconds=self._timeout_s))
        except RuntimeError as error:
            missing = [
                name for name, key in zip(self._names, keys, strict=True)
                if not store.check([key])
            ]
            if missing:
                raise RankLostError(
                    f"{', '.join(missing)} of {self.size} ranks kept the others waiting for "
                    f"{self._timeout_s:g} s: not started, dead, frozen or cut off; look at its log"
                ) from error


ALONE: Final = Ranks()


@contextmanager
def joined_ranks(
    info: RankInfo, device: torch.device | str, timeout_s: float = TIMEOUT_S,
    backend: Backend = "auto",
) -> Iterator[Ranks]:
    """Be one of the ranks for the length of the block.

    Args:
        info: from the environment.
        device: of this rank.
        timeout_s: how long to wait for a rank: to come, and to do its share of a step.
        backend: what to exchange by, the same for all ranks.

    Raises:
        RankLostError: a rank did not come; names it.
        UsageError: NCCL is asked for and a rank has no GPU of its own, or ranks disagree.
    """
    if info.size == 1:
        yield ALONE
        return
    # Its functions have the process group of this moment, none, as a default argument. Imported
    # later, by the first optimiser, they would keep ours for ever: gloo's threads would outlive it,
    # and one that frees a tensor while the interpreter ends aborts the process (pytorch 190489).
    importlib.import_module("torch.distributed.nn")
    store = _store(info, timeout_s)
    try:
        ranks = Ranks(info, store, timeout_s)
        device = torch.device(device)
        chosen = _choose_backend(backend, device, info.local_size)
        ranks.agree({"backend": chosen})
        torch.distributed.init_process_group(
            chosen, store=_store(info, timeout_s), rank=info.rank, world_size=info.size,
            timeout=timedelta(seconds=_NAMED_FIRST * timeout_s),
            device_id=device if chosen == "nccl" else None,
        )
        yield ranks
        # After an error it may never end: the others may be in an exchange without this rank.
        torch.distributed.destroy_process_group()
    except ChessSnnError as error:
        with suppress(RuntimeError):  # the error may be that the store is lost
            store.set(error_key(info.rank), json.dumps([type(error).__name__, str(error)]))
        raise


def _choose_backend(wanted: Backend, device: torch.device, local_size: int) -> str:
    """NCCL if it may be and each rank of this machine has a GPU of its own."""
    has_own_gpu = device.type == "cuda" and local_size <= torch.cuda.device_count()
    if wanted == "nccl" and not has_own_gpu:
        raise UsageError(
            f'the backend "nccl" needs a GPU for each rank, and this machine has {local_size} '
            f'ranks and {torch.cuda.device_count()} GPUs; choose "gloo" or "auto"'
        )
    if wanted != "auto":
        return wanted
    return "nccl" if has_own_gpu else "gloo"


def _store(info: RankInfo, timeout_s: float) -> Store:
    """A connection to the store that the launcher keeps, or rank 0."""
    timeout = timedelta(seconds=_NAMED_FIRST * timeout_s)
    try:
        meet = torch.distributed.rendezvous  # type: ignore[attr-defined]
        store: Store = next(meet("env://", timeout=timeout))[0]
    except (RuntimeError, ValueError) as error:
        raise RankLostError(
            f"rank {info.rank} cannot reach the store that ranks meet at: {error}"
        ) from error
    return store
