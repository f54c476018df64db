"""Options of the commands that train by several processes, on one machine or several."""

from dataclasses import replace
from typing import Annotated, Final

import typer

from chess_snn.campaign import CampaignConfig
from chess_snn.campaign.machine.training_ranks import choose_ranks, training_gpus
from chess_snn.cli.console import print_message
from chess_snn.cli.devices import setting_option
from chess_snn.config import check_range
from chess_snn.errors import UsageError
from chess_snn.training.rank_launch import RankLayout
from chess_snn.training.ranks import TIMEOUT_S

NprocPerNodeOption = Annotated[
    int, typer.Option(help="Processes on this machine. 0 starts one for each of its GPUs, but no "
                      "more than a step has micro-batches; and one on a CPU.")
]
NnodesOption = Annotated[int, typer.Option(help="Machines; run the command on each.")]
NodeRankOption = Annotated[int, typer.Option(help="Which of them this is, from 0.")]
RdzvEndpointOption = Annotated[
    str, typer.Option(help="HOST:PORT of machine 0 as all reach it; needed for several.")
]
LocalAddrOption = Annotated[
    str, typer.Option(help="Of this machine, as the others reach it; else its host name.")
]
TrustNetworkOption = Annotated[
    bool, typer.Option(
        "--trust-network", help="Needed for several machines: whoever reaches this one's ports "
        "can run programs as you, for torch takes pickles there and asks for no password.",
    ),
]
MaxRestartsOption = Annotated[
    int, typer.Option(help="How often all processes begin again when one died.")
]
TimeoutOption = Annotated[
    float, typer.Option(help="How long a process may keep the others waiting.")
]
BackendOption = Annotated[str, setting_option("execution.training_backend")]
BatchSizeOption = Annotated[int | None, setting_option("training.batch_size")]
PrecisionOption = Annotated[str, setting_option("training.precision")]

DEFAULT_TIMEOUT_S: Final = TIMEOUT_S


def rank_layout(
    nproc_per_node: int, nnodes: int, node_rank: int, rdzv_endpoint: str, local_addr: str,
    max_restarts: int, *, trust_network: bool,
) -> RankLayout:
    """The processes that the options ask for; see :func:`fitting_layout` for 0 processes.

    Raises:
        UsageError: options do not fit together, or others could reach the processes.
    """
    check_range("--nproc-per-node", nproc_per_node, ge=0, le=1024)
    layout = RankLayout(
        nproc_per_node or 1, nnodes, node_rank, rdzv_endpoint, local_addr, max_restarts
    )
    if not (layout.is_loopback or trust_network):
        raise UsageError(
            "ranks that other machines can reach take pickles from whoever does, without a "
            "password; in a private network, or behind a firewall, say --trust-network, else train "
            "on one machine, without --nnodes, --rdzv-endpoint and --local-addr"
        )
    return layout


def fitting_layout(
    layout: RankLayout, nproc_per_node: int, config: CampaignConfig
) -> RankLayout:
    """``layout`` with as many processes as fit this machine, where the option leaves that open.

    Says how many there are, and why.

    Raises:
        ConfigError: a GPU is asked for that does not exist, or NCCL without GPUs.
    """
    choice = choose_ranks(config, len(training_gpus(config)), layout.nodes)
    if nproc_per_node:
        return layout
    print_message(choice.why)
    return replace(layout, per_node=choice.number)
