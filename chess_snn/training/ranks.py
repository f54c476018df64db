"""The processes that train one network together, and all that passes between them.

Launched by ``torchrun``, or by anything that sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
The ranks have the same network and draw the same samples; what differs is which micro-batches each
of them computes. So all they exchange is one vector a step, summed.
"""

import ipaddress
import json
import os
import signal
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import Store, TCPStore  # type: ignore[attr-defined]

from chess_snn.errors import RankLostError, UsageError
from chess_snn.processes import end_with_parent
from chess_snn.training.rank_watch import RankCard, RankWatch, gather_texts, meet
from chess_snn.training.settings import Backend

TIMEOUT_S: Final = 300.0
"""How long ranks wait for one of them by default."""
_NAMED_FIRST: Final = 2.0
"""torch's own timeout, which names no rank, is this many times ours."""
_AGENT_KEEPS_STORE: Final = "TORCHELASTIC_USE_AGENT_STORE"
AGENT_PID: Final = "CHESS_SNN_AGENT_PID"
"""Variable by which our launcher tells ranks its process id."""


def end_with_launcher() -> None:
    """Have this rank killed when its launcher dies: nothing else would end it then.

    A rank whose launcher has died already exits, where it was told who that is.
    """
    end_with_parent(int(os.environ.get(AGENT_PID, os.getppid())), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class RankPlace:
    """What a launcher tells a rank."""

    rank: int
    size: int
    local_rank: int
    """From 0 among the ranks of this machine."""
    local_size: int
    address: str
    port: int
    keeps_store: bool
    """Whether the ranks meet in this process, and not in the launcher."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "RankPlace | None":
        """This process's place; None where nothing launched it as a rank.

        Raises:
            UsageError: a variable is missing or no number, or numbers do not fit together.
        """
        found = os.environ if environment is None else environment
        if "RANK" not in found:
            return None
        rank, size = _number(found, "RANK"), _number(found, "WORLD_SIZE")
        local_rank = _number(found, "LOCAL_RANK", rank)
        local_size = _number(found, "LOCAL_WORLD_SIZE", size)
        for name, value, bound in (
            ("RANK", rank, size), ("LOCAL_RANK", local_rank, local_size),
            ("LOCAL_WORLD_SIZE", local_size, size + 1),
        ):
            if not 0 <= value < bound:
                raise UsageError(
                    f"{name} = {value} does not fit WORLD_SIZE = {size} and LOCAL_WORLD_SIZE = "
                    f"{local_size}; start ranks with torchrun"
                )
        return cls(
            rank, size, local_rank, local_size, _text(found, "MASTER_ADDR"),
            _number(found, "MASTER_PORT"),
            keeps_store=rank == 0 and found.get(_AGENT_KEEPS_STORE) != "True",
        )


class Ranks:
    """One process alone: nothing to exchange, and no rank to wait for."""

    rank = 0
    size = 1

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which alone prints, logs and saves."""
        return self.rank == 0

    def add_up(self, vector: Tensor) -> None:
        """Replace ``vector`` by its sum over all ranks, the same bits on each.

        Raises:
            RankLostError: one of them died or froze; names it where that can be told.
        """

    def agree(self, facts: Mapping[str, str]) -> None:
        """See that all ranks have the same ``facts``.

        Raises:
            UsageError: one has others than rank 0; names it, and the first fact that differs.
            RankLostError: one did not come; names it.
        """


ALONE: Final = Ranks()


class RankGroup(Ranks):
    """Several processes, made by :func:`joined_ranks`."""

    def __init__(
        self, place: RankPlace, store: Store, cards: list[RankCard], watch: RankWatch,
        timeout_s: float,
    ) -> None:
        self.rank, self.size = place.rank, place.size
        self._store, self._cards, self._watch = store, cards, watch
        self._timeout_s = timeout_s
        self._num_agreements = 0

    def add_up(self, vector: Tensor) -> None:
        """As :meth:`Ranks.add_up`; on a GPU it returns when the sum is under way."""
        self._watch.begin_exchange()
        try:
            dist.all_reduce(vector)
        except RuntimeError as error:
            raise self._watch.lost_in_exchange(error) from error

    def agree(self, facts: Mapping[str, str]) -> None:
        """As :meth:`Ranks.agree`."""
        self._num_agreements += 1
        texts = gather_texts(
            self._store, f"agreement {self._num_agreements}", self.rank, self._cards,
            json.dumps(dict(facts)), self._timeout_s,
        )
        wanted, *others = map(json.loads, texts)
        for card, told in zip(self._cards[1:], others, strict=True):
            for name, value in wanted.items():
                if told.get(name) != value:
                    raise UsageError(
                        f"{card} has {name} = {told.get(name)}, and {self._cards[0]} has {value}; "
                        "all ranks need the same campaign folder, settings and version"
                    )


@contextmanager
def joined_ranks(
    place: RankPlace, device: torch.device | str, timeout_s: float = TIMEOUT_S,
    backend: Backend = "auto",
) -> Iterator[Ranks]:
    """Be one of the ranks for the length of the block.

    Where a rank is lost meanwhile, this process ends at once, whatever its main thread waits for.

    Args:
        place: from the environment.
        device: of this rank.
        timeout_s: how long to wait for a rank: to come, and to do its share of a step.
        backend: what to exchange by, the same for all ranks.

    Raises:
        RankLostError: a rank did not come; names it.
        UsageError: NCCL is asked for and a rank has no GPU of its own, or ranks disagree.
    """
    if place.size == 1:
        yield ALONE
        return
    device = torch.device(device)
    with ExitStack() as stack:
        store = _store(place, timeout_s, keeps_it=place.keeps_store)
        # One connection for waiting, another for the signs of life.
        signs = _store(place, timeout_s)
        cards = meet(signs, place.rank, place.size, timeout_s)
        watch = stack.enter_context(RankWatch(signs, place.rank, cards, timeout_s))
        own_gpu = device.type == "cuda" and place.local_size <= torch.cuda.device_count()
        told = gather_texts(
            store, "backend", place.rank, cards, json.dumps([backend, own_gpu]), timeout_s
        )
        chosen = _common_backend(cards, list(map(json.loads, told)))
        dist.init_process_group(
            chosen, store=store, rank=place.rank, world_size=place.size,
            timeout=timedelta(seconds=_NAMED_FIRST * timeout_s),
            device_id=device if chosen == "nccl" else None,
        )
        yield RankGroup(place, store, cards, watch, timeout_s)
        # After an error it may never end: the others may be in an exchange without this rank.
        dist.destroy_process_group()
        if place.keeps_store:
            watch.wait_until_all_left()


def _common_backend(cards: list[RankCard], told: list[tuple[Backend, bool]]) -> str:
    """The backend of all ranks, from what each wants and whether it has a GPU of its own."""
    wanted, _ = told[0]
    for card, (other, _) in zip(cards, told, strict=True):
        if other != wanted:
            raise UsageError(
                f'{card} has the backend "{other}", and {cards[0]} has "{wanted}"; give all ranks '
                "the same"
            )
    without = [card for card, (_, own_gpu) in zip(cards, told, strict=True) if not own_gpu]
    if wanted == "nccl" and without:
        raise UsageError(
            f'the backend "nccl" needs a GPU for each rank, and {without[0]} has none of its own; '
            'choose "gloo" or "auto"'
        )
    if wanted != "auto":
        return wanted
    return "gloo" if without else "nccl"


def _store(place: RankPlace, timeout_s: float, keeps_it: bool = False) -> Store:
    """A connection to the store that ranks meet at."""
    try:
        listener = _loopback_listener(place) if keeps_it else None
        return TCPStore(
            place.address, place.port, is_master=keeps_it, wait_for_workers=False,
            timeout=timedelta(seconds=_NAMED_FIRST * timeout_s), master_listen_fd=listener,
        )
    except (OSError, RuntimeError) as error:
        raise RankLostError(
            f"rank {place.rank} cannot {'open' if keeps_it else 'reach'} {place.address}:"
            f"{place.port}, where ranks meet: {error}"
        ) from error


def _loopback_listener(place: RankPlace) -> int | None:
    """A socket for a store that is kept on loopback; None where others are to reach it.

    torch itself would listen on every network, without authentication.
    """
    try:
        if not ipaddress.IPv4Address(place.address).is_loopback:
            return None
    except ValueError:  # a name, or IPv6
        return None
    with socket.create_server((place.address, place.port)) as server:
        return server.detach()


def _text(environment: Mapping[str, str], name: str) -> str:
    if name not in environment:
        raise UsageError(f"RANK is set and {name} is not; start ranks with torchrun")
    return environment[name]


def _number(environment: Mapping[str, str], name: str, default: int | None = None) -> int:
    if name not in environment and default is not None:
        return default
    text = _text(environment, name)
    if not text.isdecimal():
        raise UsageError(f"{name} = {text!r} is not a number; start ranks with torchrun")
    return int(text)
