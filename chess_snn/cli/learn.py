"""``chess-snn games learn``: a network trained on a dataset, without a campaign."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from chess_snn.campaign import load_config, preset_names
from chess_snn.campaign.machine.training_launch import train_network
from chess_snn.cli.console import console, print_message, table_of
from chess_snn.cli.options import (
    ConfigOption,
    DeviceOption,
    GpusOption,
    JsonFile,
    SetOption,
    check_dataset,
    given_settings,
    parse_gpus,
    setting_option,
)
from chess_snn.cli.train import (
    DEFAULT_TIMEOUT_S,
    BackendOption,
    BatchSizeOption,
    NnodesOption,
    NodeRankOption,
    NprocPerNodeOption,
    PrecisionOption,
    RdzvEndpointOption,
    TimeoutOption,
    TrustNetworkOption,
    rank_layout,
)
from chess_snn.config import check_range
from chess_snn.cores import num_cores
from chess_snn.data import write_json
from chess_snn.interrupts import EXIT_INTERRUPTED


def _figure(name: str, form: str) -> Callable[[Mapping[str, float]], str]:
    return lambda point: format(point[name], form) if name in point else ""


_COLUMNS: Final = {
    "step": _figure("step", ",.0f"),
    "epoch": _figure("epoch", ".2f"),
    "policy\nloss": _figure("policy_loss", ".3f"),
    "value\nloss": _figure("value_loss", ".3f"),
    "samples/s": _figure("samples_per_s", ",.0f"),
    "held out:\npolicy": _figure("holdout_policy_loss", ".3f"),
    "\nvalue": _figure("holdout_value_target_loss", ".3f"),
    "\nBrier": _figure("holdout_brier_score", ".3f"),
    "\nwinner %": _figure("holdout_decided_accuracy", ".1%"),
    "\nmoves %": _figure("holdout_policy_accuracy", ".1%"),
}
_MOST_ROWS = 12


def learn_command(
    games: Annotated[
        Path, typer.Argument(help="The --out of chess-snn games import, or a campaign's folder.")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the network to be.")],
    preset: Annotated[
        str | None, typer.Option(help=f"Where to begin: {', '.join(preset_names())}.")
    ] = None,
    config: ConfigOption = None,
    set: SetOption = None,
    batch_size: BatchSizeOption = None,
    learning_rate: Annotated[float | None, setting_option("supervised.learning_rate")] = None,
    precision: PrecisionOption = "",
    device: DeviceOption = "",
    gpus: GpusOption = "",
    backend: BackendOption = "",
    nproc_per_node: NprocPerNodeOption = 0,
    nnodes: NnodesOption = 1,
    node_rank: NodeRankOption = 0,
    rdzv_endpoint: RdzvEndpointOption = "",
    trust_network: TrustNetworkOption = False,
    threads: Annotated[
        int, typer.Option(min=0, max=1024,
                          help="Of a CPU, shared by its processes; 0 takes every core.")
    ] = 0,
    timeout_s: TimeoutOption = DEFAULT_TIMEOUT_S,
    json_file: JsonFile = None,
) -> None:
    """Train a network on a dataset: the moves that were played, and how the games ended.

    Settings are those of a campaign: net, training, supervised, campaign.seed, execution.device.
    One game in 16 is held out and measured. After Ctrl-C or a crash, the same command goes on. All
    GPUs of the machine share each step; on several machines, run the command on each.

    chess-snn games learn imports/lichess --out networks/tiny --set supervised.epochs=3

    chess-snn games learn imports/lichess --out networks/large --set net.size=large
    --batch-size 4096 --learning-rate 1e-3
    """
    check_range("--timeout-s", timeout_s, gt=0, le=86_400)
    options = given_settings({
        "supervised.games": str(games),
        "training.batch_size": batch_size,
        "supervised.learning_rate": learning_rate,
        "training.precision": precision,
        "execution.device": device,
        "execution.gpus": parse_gpus(gpus) if gpus else None,
        "execution.training_backend": backend,
    })
    configuration = load_config(preset, config, [*(set or []), *options])
    layout = rank_layout(
        configuration, nproc_per_node, nnodes, node_rank, rdzv_endpoint,
        trust_network=trust_network,
    )
    configuration = check_dataset(configuration)
    state = "was trained before" if out.exists() else "is trained"
    try:
        points = train_network(
            configuration, out, layout,
            num_threads=max(1, (threads or num_cores()) // layout.number), timeout_s=timeout_s,
            on_line=print_message,
        )
    except KeyboardInterrupt:
        print_message("stopped; the same command goes on from the last checkpoint")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if points:
        # The beginning, the end, and some points evenly between them.
        rows = np.unique(np.linspace(0, len(points) - 1, _MOST_ROWS).astype(int))
        console.print(table_of(None, [points[row] for row in rows], _COLUMNS))
    print_message(
        f"{out} {state}. What to do next:\n"
        f"  chess-snn match {out}:64 greedy     what it has learnt\n"
        f"  chess-snn play --model {out}"
    )
    if json_file is not None:
        write_json(json_file, {"network": str(out), "points": points})
