"""``chess-snn cluster``: certificates, a scheduler and workers for campaigns on many machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from chess_snn.cli.console import print_message
from chess_snn.cli.options import DeviceOption, GpusOption, WorkersOption, pace_settings
from chess_snn.cli.orchestration import load_cluster
from chess_snn.later import to_run
from chess_snn.ports import is_loopback
from chess_snn.settings import check_range

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign import load_config
    from chess_snn.campaign.machine.slots import this_machine
    from chess_snn.campaign.machine.workers import gpus_for, plan_workers

_MOST_WORKERS = 1024

app = typer.Typer(
    help="Many machines: a scheduler, workers and certificates.",
    no_args_is_help=True,
)

Certificates = Annotated[
    str,
    typer.Option(help="Folder that `cluster certs` made; else "
                 "$CHESS_SNN_CERTIFICATES. Off loopback they are demanded."),
]


@app.command()
def certs(
    directory: Annotated[Path, typer.Argument(help="Folder for them; it is created.")],
) -> None:
    """Make the certificates of a cluster: one key for all its hosts, valid for a year.

    Copy DIR to each host. A process that has the key may run programs on all of them.

    chess-snn cluster certs ~/chess-snn-certs
    """
    load_cluster("security").make_certificates(directory)
    print_message(
        f"{directory}: certificates and their key. Copy the folder to each host, and name it "
        "there: export CHESS_SNN_CERTIFICATES=FOLDER"
    )


@app.command()
def scheduler(
    host: Annotated[
        str, typer.Option(help="Address of this machine to listen on.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="To listen on.")] = 8786,
    certificates: Certificates = "",
) -> None:
    """Run a Dask scheduler until Ctrl-C: where campaigns and workers meet.

    On loopback it does not authenticate clients; on any other address it needs certificates.

    chess-snn cluster scheduler --host box-a --certificates box-a
    """
    check_range("--port", port, ge=1, le=65535)
    scheme = "tcp" if is_loopback(host) and not certificates else "tls"
    written = f"[{host}]" if ":" in host else host
    security = load_cluster("security").security_of(
        f"{scheme}://{written}:{port}", certificates, "--certificates"
    )
    load_cluster("programs").run_scheduler(host, port, security, _print_ready)


@app.command()
def worker(
    address: Annotated[str, typer.Argument(help="Of the scheduler, such as tls://box-a:8786.")],
    workers: WorkersOption = None,
    gpus: GpusOption = "",
    device: DeviceOption = "auto",
    memory_mib: Annotated[
        int, typer.Option(help="Most memory of a worker; 0 deals the machine's out evenly.")
    ] = 0,
    certificates: Certificates = "",
    name: Annotated[
        str, typer.Option(help="What this machine is called in lines and tables; else its host "
                          "name.")
    ] = "",
    host: Annotated[
        str, typer.Option(help="Address to listen on; else the one that leads to the scheduler.")
    ] = "",
    patience_s: Annotated[
        float, typer.Option(help="How long the scheduler may be away before this gives up.")
    ] = 3600.0,
) -> None:
    """Give this machine's devices to the campaigns of a scheduler, until Ctrl-C.

    Each worker keeps to a GPU or to cores of its own. A machine may come and go while a campaign
    runs. It needs chess-snn[worker], of the same versions as the campaign's.

    chess-snn cluster worker tls://box-a:8786 --certificates box-b
    """
    check_range("--patience-s", patience_s, ge=0, le=1_000_000)
    security = load_cluster("security").security_of(address, certificates, "--certificates")
    pace = pace_settings(workers, gpus, device, cluster="")
    config = load_config(settings=[*pace, ("execution.worker_memory_mib", memory_mib)])
    plan = plan_workers(config, this_machine(gpus_for(config), name), _MOST_WORKERS)
    for note in plan.notes:
        print_message(note)
    load_cluster("programs").run_workers(
        address, plan.slots, security, host=host, patience_s=patience_s, on_news=print_message
    )


def _print_ready(address: str) -> None:
    print_message(
        f"scheduler at {address}; Ctrl-C ends it\n"
        f"  chess-snn cluster worker {address}                 on each machine that works\n"
        f"  chess-snn campaign start --set cluster.kind=address --set cluster.address={address}"
    )
