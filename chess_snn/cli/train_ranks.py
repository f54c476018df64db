"""``chess-snn train``: a campaign's next generation, by processes on one machine or several."""

import os
from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign import CampaignConfig, CampaignFolder, campaign_lock
from chess_snn.campaign.machine.workers import gpus_for
from chess_snn.campaign.stages.to_train import iteration_to_train
from chess_snn.campaign.stages.training_launch import train_in_ranks
from chess_snn.cli.console import print_message, work_bar
from chess_snn.config import check_range
from chess_snn.devices import VISIBLE_GPUS, choose_devices
from chess_snn.errors import UsageError
from chess_snn.training.rank_launch import RankLayout
from chess_snn.training.ranks import TIMEOUT_S


def train_command(
    campaign: Annotated[Path, typer.Argument(help="Its folder, the same on all machines.")],
    iteration: Annotated[
        int | None, typer.Option(help="Whose games are new; else the first not trained on.")
    ] = None,
    nproc_per_node: Annotated[
        int, typer.Option(help="Processes on each machine: one a GPU; several share a CPU's cores.")
    ] = 1,
    nnodes: Annotated[int, typer.Option(help="Machines; run the command on each.")] = 1,
    node_rank: Annotated[int, typer.Option(help="Which of them this is, from 0.")] = 0,
    rdzv_endpoint: Annotated[
        str, typer.Option(help="HOST:PORT of machine 0 as all reach it; needed for several.")
    ] = "",
    local_addr: Annotated[
        str, typer.Option(help="Of this machine, as the others reach it; else its host name.")
    ] = "",
    trust_network: Annotated[
        bool, typer.Option(
            "--trust-network", help="Needed for several machines: whoever reaches this one's ports "
            "can run programs as you, for torch takes pickles there and asks for no password.",
        ),
    ] = False,
    max_restarts: Annotated[
        int, typer.Option(help="How often all processes begin again when one died.")
    ] = 0,
    threads: Annotated[
        int, typer.Option(help="Of each process on a CPU; 0 shares the cores.")
    ] = 0,
    timeout_s: Annotated[
        float, typer.Option(help="How long a process may keep the others waiting.")
    ] = TIMEOUT_S,
) -> None:
    """Train a campaign's next generation on the games that it has played.

    The steps are those that the campaign would make itself; processes share each of them.

    chess-snn train campaigns/gpu-001 --nproc-per-node 8

    On each of two machines that see the same folder, with --node-rank 0 and 1, in a network where
    nobody else is:

    chess-snn train campaigns/gpu-001 --nproc-per-node 8 --nnodes 2 --node-rank 0
    --rdzv-endpoint node-0:29400 --trust-network
    """
    check_range("--threads", threads, ge=0, le=1024)
    check_range("--timeout-s", timeout_s, gt=0, le=86_400)
    layout = RankLayout(
        nproc_per_node, nnodes, node_rank, rdzv_endpoint, local_addr, max_restarts
    )
    if not (layout.is_loopback or trust_network):
        raise UsageError(
            "ranks that other machines can reach take pickles from whoever does, without a "
            "password; in a private network, or behind a firewall, say --trust-network, else train "
            "on one machine, without --nnodes, --rdzv-endpoint and --local-addr"
        )
    folder = CampaignFolder.open(campaign)
    _show_only_chosen_gpus(folder.config)
    if node_rank:
        _train(folder, iteration, layout, threads, timeout_s)
    else:
        with campaign_lock(folder):
            _train(folder, iteration, layout, threads, timeout_s)


def _show_only_chosen_gpus(config: CampaignConfig) -> None:
    """Have the processes of the ranks see the GPUs of ``execution.gpus`` alone."""
    execution = config.execution
    devices = choose_devices(execution.device, execution.gpus, gpus_for(config))
    if tokens := [device.token for device in devices if device.is_gpu]:
        os.environ[VISIBLE_GPUS] = ",".join(tokens)


def _train(
    folder: CampaignFolder, wanted: int | None, layout: RankLayout, threads: int, timeout_s: float
) -> None:
    iteration = iteration_to_train(folder, wanted)
    with work_bar(f"training generation {iteration + 1}", "steps") as on_progress:
        facts = train_in_ranks(
            folder.path, iteration, layout, num_threads=threads, timeout_s=timeout_s,
            on_progress=on_progress,
        )
    metrics = facts.metrics
    print_message(
        f"{folder.checkpoint(facts.generation)}: {metrics['steps']:,.0f} steps by "
        f"{metrics['ranks']:.0f} processes, {metrics['samples_per_s']:,.0f} samples/s, value loss "
        f"{metrics['value_loss']:.3f}, policy loss {metrics['policy_loss']:.3f}. "
        f"Go on with: chess-snn campaign resume {folder.path}"
    )
