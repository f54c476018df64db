"""``chess-snn games label`` and ``games learn``: from games to labels, and to a network."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from chess_snn.cli.console import console, print_message, stoppable, table_of, work_bar
from chess_snn.cli.options import (
    ConfigOption,
    DeviceOption,
    GpusOption,
    JsonFile,
    NetworkDeviceOption,
    SetOption,
    SimulationsOption,
    check_dataset,
    given_settings,
    parse_gpus,
    setting_option,
)
from chess_snn.cores import num_cores
from chess_snn.errors import UsageError
from chess_snn.known import ENGINE_FORMS, LINES, LINES_TEMPERATURE_CP, PRESETS, TIMEOUT_S
from chess_snn.later import to_run
from chess_snn.settings import check_range
from chess_snn.training.settings import SupervisedSettings, TrainingSettings
from chess_snn.wording import counted

if TYPE_CHECKING or to_run(__name__):
    import numpy as np

    from chess_snn.campaign import CampaignConfig, load_config
    from chess_snn.campaign.labelling import Teaching, label_games
    from chess_snn.campaign.machine.training_launch import (
        choose_ranks,
        train_network,
        training_gpus,
    )
    from chess_snn.campaign.models.references import find_model
    from chess_snn.campaign.store.collection import joined, open_collection
    from chess_snn.data import write_json
    from chess_snn.devices import VISIBLE_GPUS
    from chess_snn.evaluation.engines.player import is_engine_name
    from chess_snn.evaluation.engines.teacher import Lines
    from chess_snn.training import RankInfo
    from chess_snn.training.ranks import divide

NprocPerNodeOption = Annotated[
    int, typer.Option(help="Processes on this machine. 0 starts one for each of its GPUs, but no "
                      "more than a step has micro-batches; and one on a CPU.")
]
TimeoutOption = Annotated[
    float, typer.Option(help="How long a process may keep the others waiting.")
]
BackendOption = Annotated[str, setting_option("training_backend")]
BatchSizeOption = Annotated[int | None, setting_option("batch_size", owner=TrainingSettings)]
LearningRateOption = Annotated[
    float | None, setting_option("learning_rate", owner=SupervisedSettings)
]
PrecisionOption = Annotated[str, setting_option("precision", owner=TrainingSettings)]


def num_ranks(config: CampaignConfig, nproc_per_node: int) -> int:
    """The processes to start; says how many fit if the option leaves that open.

    A process that trains alone gets the GPUs that it may use. One that torchrun started is a rank
    and starts no others.

    Raises:
        UsageError: a GPU is asked for that does not exist, there are more processes than
            micro-batches, or a rank of torchrun is to start others.
    """
    check_range("--nproc-per-node", nproc_per_node, ge=0, le=1024)
    if (info := RankInfo.from_environment()).size > 1:
        if nproc_per_node:
            raise UsageError(
                "torchrun has started this process as one of several; give --nproc-per-node to "
                "torchrun alone"
            )
        divide(config.training, info.size)  # or refuse so many
        return 1
    gpus = training_gpus(config)
    choice = choose_ranks(config, len(gpus))
    number = nproc_per_node or choice.number
    divide(config.training, number)
    if not nproc_per_node:
        print_message(choice.why)
    if number == 1 and gpus:
        os.environ[VISIBLE_GPUS] = ",".join(gpus)
    return number


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
        str | None, typer.Option(help=f"Where to begin: {', '.join(PRESETS)}.")
    ] = None,
    config: ConfigOption = None,
    set: SetOption = None,
    batch_size: BatchSizeOption = None,
    learning_rate: LearningRateOption = None,
    precision: PrecisionOption = "",
    device: DeviceOption = "",
    gpus: GpusOption = "",
    backend: BackendOption = "",
    nproc_per_node: NprocPerNodeOption = 0,
    threads: Annotated[
        int, typer.Option(min=0, max=1024,
                          help="Of a CPU, shared by its processes; 0 takes every core.")
    ] = 0,
    timeout_s: TimeoutOption = TIMEOUT_S,
    json_file: JsonFile = None,
) -> None:
    """Train a network on a dataset: the moves that were played, and how the games ended.

    Settings are those of a campaign: net, training, supervised, campaign.seed, execution.device.
    One game in 16 is held out and measured. After Ctrl-C or a crash, the same command goes on. All
    GPUs of the machine share each step; several machines train under torchrun.

    chess-snn games learn imports/lichess --out networks/tiny --set supervised.epochs=3

    chess-snn games learn imports/lichess --out networks/large --set net.size=large
    --batch-size 4096 --learning-rate 1e-3

    torchrun --nproc-per-node 8 -m chess_snn games learn imports/lichess --out networks/large
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
    number = num_ranks(configuration, nproc_per_node)
    fixed = check_dataset(configuration.supervised, configuration.campaign.game)
    configuration = replace(configuration, supervised=fixed)
    info = RankInfo.from_environment()
    state = "was trained before" if out.exists() else "is trained"
    with stoppable("stopped; the same command goes on from the last checkpoint"):
        points = train_network(
            configuration, out, number,
            num_threads=max(1, (threads or num_cores()) // max(number, info.local_size)),
            timeout_s=timeout_s, on_line=print_message,
        )
    if info.rank:
        return
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


def label_command(
    games: Annotated[
        list[Path],
        typer.Argument(help="Campaigns' folders, or --out of chess-snn games import; one or more."),
    ],
    out: Annotated[Path, typer.Option(help="New folder, or that of labels to go on with.")],
    teacher: Annotated[
        str, typer.Option(help=f"An engine, {', '.join(ENGINE_FORMS)}, or a network.")
    ] = "stockfish@300",
    lines: Annotated[
        int, typer.Option(help="Moves that an engine gives a share of the policy to.")
    ] = LINES,
    temperature: Annotated[
        float, typer.Option(help="Centipawns by which a move must be worse to get 1/e of a share.")
    ] = LINES_TEMPERATURE_CP,
    simulations: SimulationsOption = 64,
    limit: Annotated[int | None, typer.Option(help="About how many games; else all.")] = None,
    workers: Annotated[
        int, typer.Option(help="Processes; 0 takes every core, and one on a GPU.")
    ] = 0,
    device: NetworkDeviceOption = "cpu",
    json_file: JsonFile = None,
) -> None:
    """Let an engine, or a larger network, say of each position what to play and how it stands.

    The labelled games are a dataset for `games learn` and `campaign start --warm-start`. After
    Ctrl-C, the same command goes on; finished shards of 64 games are kept. An engine's budget is
    nodes or depth, so the labels are the same on every machine.

    chess-snn games label campaigns/cpu-001 campaigns/cpu-002 --out labels/cpu --teacher
    stockfish@1000

    chess-snn games label imports/lichess --out labels/lichess --teacher networks/large:32
    """
    collection = joined([open_collection(path) for path in games])
    if is_engine_name(teacher):
        teaching = Teaching(teacher, lines=Lines(lines, temperature))
    else:
        model = find_model(teacher, game=collection.spec.name, simulations=simulations)
        teaching = Teaching(teacher, model, device=device)
    processes = workers or (1 if device.startswith("cuda") else num_cores())
    with (
        stoppable("stopped; the same command goes on, and finished shards are kept"),
        work_bar(f"labelling {collection.name}", "games") as on_progress,
    ):
        labelled = label_games(
            collection, out, teaching, workers=processes, limit=limit, on_progress=on_progress
        )
    report = labelled.report
    print_message(
        f"{out}: {counted(report.games, 'game')}, {counted(report.positions, 'position')}, "
        f"{labelled.new_positions:,} of them labelled now, {labelled.positions_per_s:,.0f} a "
        f"second. What to do next:\n"
        f"  chess-snn games learn {out} --out networks/student --preset cpu"
    )
    if json_file is not None:
        write_json(json_file, report.to_json() | {
            "new_positions": labelled.new_positions, "seconds": round(labelled.seconds, 3),
            "positions_per_s": round(labelled.positions_per_s, 1),
        })
