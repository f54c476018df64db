"""Which machines of a cluster train a generation together."""

from collections.abc import Mapping, Sequence, Sized

from tasks.cluster.crew_watch import Member


def choose_machines(
    trainers: Sequence[Member], tasks: Mapping[str, Sized], most: int
) -> list[Member]:
    """At most ``most`` workers, each on another machine; by the names of these.

    Where there are GPUs, those of GPUs alone: ranks on GPUs and on processors exchange in different
    ways. Machines, and the workers of each, are taken that have least to do.

    Args:
        trainers: workers that may train.
        tasks: what each has to do already, by its address.
        most: >= 1.
    """
    with_gpus = [member for member in trainers if not member.shares_cores]

    def pressure(member: Member) -> tuple[int, str, str]:
        return len(tasks.get(member.address, ())), member.host, member.name

    by_host: dict[str, Member] = {}
    for member in sorted(with_gpus or trainers, key=pressure):
        by_host.setdefault(member.host, member)
    chosen = list(by_host.values())[:most]
    return sorted(chosen, key=lambda member: member.host)
