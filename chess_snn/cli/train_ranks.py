"""``chess-snn train``: a campaign's next generation, by processes on one machine or several."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign import CampaignConfig, CampaignFolder, campaign_lock
from chess_snn.campaign.configuration.loading import change_pace
from chess_snn.campaign.machine.training_launch import generation_training, run_in_ranks
from chess_snn.campaign.stages.to_train import iteration_to_train
from chess_snn.cli.console import print_message
from chess_snn.cli.devices import GpusOption, given_settings, parse_gpus, setting_option
from chess_snn.cli.rank_options import (
    DEFAULT_TIMEOUT_S,
    BackendOption,
    BatchSizeOption,
    LocalAddrOption,
    MaxRestartsOption,
    NnodesOption,
    NodeRankOption,
    NprocPerNodeOption,
    PrecisionOption,
    RdzvEndpointOption,
    TimeoutOption,
    TrustNetworkOption,
    fitting_layout,
    rank_layout,
)
from chess_snn.config import check_range
from chess_snn.errors import UsageError
from chess_snn.training.rank_launch import RankLayout
from chess_snn.types import Json


def train_command(
    campaign: Annotated[Path, typer.Argument(help="Its folder, the same on all machines.")],
    iteration: Annotated[
        int | None, typer.Option(help="Whose games are new; else the first not trained on.")
    ] = None,
    nproc_per_node: NprocPerNodeOption = 0,
    nnodes: NnodesOption = 1,
    node_rank: NodeRankOption = 0,
    rdzv_endpoint: RdzvEndpointOption = "",
    local_addr: LocalAddrOption = "",
    trust_network: TrustNetworkOption = False,
    max_restarts: MaxRestartsOption = 0,
    threads: Annotated[
        int, typer.Option(help="Of each process on a CPU; 0 shares the cores.")
    ] = 0,
    timeout_s: TimeoutOption = DEFAULT_TIMEOUT_S,
    gpus: GpusOption = "",
    backend: BackendOption = "",
    batch_size: BatchSizeOption = None,
    learning_rate: Annotated[float | None, setting_option("training.learning_rate")] = None,
    precision: PrecisionOption = "",
) -> None:
    """Train a campaign's next generation on the games that it has played.

    The steps are those that the campaign would make itself; processes share each of them. A
    campaign keeps its batch size, learning rate and precision: others than its own are refused.

    chess-snn train campaigns/gpu-001

    On each of two machines that see the same folder, with --node-rank 0 and 1, in a network where
    nobody else is:

    chess-snn train campaigns/gpu-001 --nnodes 2 --node-rank 0 --rdzv-endpoint node-0:29400
    --trust-network
    """
    check_range("--threads", threads, ge=0, le=1024)
    check_range("--timeout-s", timeout_s, gt=0, le=86_400)
    layout = rank_layout(
        nproc_per_node, nnodes, node_rank, rdzv_endpoint, local_addr, max_restarts,
        trust_network=trust_network,
    )
    folder = CampaignFolder.open(campaign)
    _check_kept(folder, {
        "training.batch_size": batch_size, "training.learning_rate": learning_rate,
        "training.precision": precision or None,
    })
    config = change_pace(folder.config, given_settings({
        "execution.gpus": parse_gpus(gpus) if gpus else None,
        "execution.training_backend": backend,
    }))
    layout = fitting_layout(layout, nproc_per_node, config)
    if node_rank:
        _train(folder, config, iteration, layout, threads, timeout_s)
    else:
        with campaign_lock(folder):
            _train(folder, config, iteration, layout, threads, timeout_s)


def _check_kept(folder: CampaignFolder, wanted: Json) -> None:
    """Refuse settings that the campaign's results depend on, unless they are its own."""
    for setting, value in wanted.items():
        own = getattr(folder.config.training, setting.partition(".")[2])
        if value not in (None, own):
            raise UsageError(
                f"{folder.path} trains with {setting} = {own}, which its results depend on, and "
                f"not with {value}; to continue it under another: chess-snn campaign fork "
                f"{folder.path} --at N --set {setting}={value}"
            )


def _train(
    folder: CampaignFolder, config: CampaignConfig, wanted: int | None, layout: RankLayout,
    threads: int, timeout_s: float,
) -> None:
    iteration = iteration_to_train(folder, wanted)
    facts = run_in_ranks(
        replace(generation_training(folder.path, iteration), config=config), layout,
        num_threads=threads, timeout_s=timeout_s, on_line=print_message,
    )
    metrics = facts.metrics
    print_message(
        f"{folder.checkpoint(facts.generation)}: {metrics['steps']:,.0f} steps by "
        f"{metrics['ranks']:.0f} processes, {metrics['samples_per_s']:,.0f} samples/s, value loss "
        f"{metrics['value_loss']:.3f}, policy loss {metrics['policy_loss']:.3f}. "
        f"Go on with: chess-snn campaign resume {folder.path}"
    )
