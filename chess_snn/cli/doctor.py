"""``chess-snn doctor``: what this machine has, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from chess_snn.cli.console import console, print_json, print_message, work_bar
from chess_snn.cli.options import AsJsonOption
from chess_snn.doctor import Level
from chess_snn.errors import ConfigError
from chess_snn.later import to_run

if TYPE_CHECKING or to_run(__name__):
    from chess_snn.campaign.store.naming import campaigns_home
    from chess_snn.devices import Device, DeviceChoice, choose_devices, visible_gpus
    from chess_snn.doctor import Finding
    from chess_snn.doctor.checks import check_all

EXIT_BROKEN: Final = 1
DEFAULT_PORTS: Final = (4200, 5000)
"""Ports of `chess-snn up`."""

_MARKS: Final = {Level.OK: "ok", Level.NOTE: "note", Level.BROKEN: "BROKEN"}


def doctor_command(
    as_json: AsJsonOption = False,
    play: Annotated[
        bool, typer.Option("--play", help="Also play and train on each device; about a minute.")
    ] = False,
    device: Annotated[
        str, typer.Option(help="Of --play: auto, every GPU or else the CPU; cpu; cuda; cuda:N.")
    ] = "auto",
) -> None:
    """Check versions, GPUs, the disk, ports and engines.

    A line each: ok, note (works, but could be better) or BROKEN, with what to do about it. Exit
    code 1 where something is broken. Changes nothing.

    With --play every device also plays and trains for a few seconds, all at the same time, and says
    how fast it was. One that fails keeps none of the others from it.

    chess-snn doctor --play
    """
    devices = devices_to_try(device) if play else []
    findings: list[Finding] = []

    def add(found: Iterable[Finding]) -> None:
        for finding in found:
            findings.append(finding)
            if not as_json:
                _print(finding)

    add(check_all(campaigns_home().parent, DEFAULT_PORTS))
    if devices:
        from chess_snn.doctor.device_trials import try_devices  # noqa: PLC0415 - takes 0.2 s
        trials = "playing and training on each device"
        with work_bar(trials, "done", beside_json=as_json) as update:
            update(0, len(devices))
            for count, finding in enumerate(try_devices(devices), 1):
                add([finding])
                update(count, len(devices))
    num_broken = sum(finding.level is Level.BROKEN for finding in findings)
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_message(f"{num_broken} broken" if num_broken else "nothing is broken")
    if num_broken:
        raise typer.Exit(EXIT_BROKEN)


def devices_to_try(text: str) -> list[Device]:
    """The devices of this machine that ``--device`` names.

    Raises:
        ConfigError: one of them does not exist.
    """
    kind, _, number = text.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and not number.isdecimal()):
        raise ConfigError(f"unknown device {text!r}; use cpu, cuda, cuda:N or auto")
    wanted = [int(number)] if number else []
    return choose_devices(cast(DeviceChoice, kind), wanted, visible_gpus())


def _print(finding: Finding) -> None:
    line = f"{_MARKS[finding.level]:<7}{finding.subject:<15}{finding.fact}"
    if finding.remedy:
        line += f"; {finding.remedy}"
    style = {Level.OK: "", Level.NOTE: "yellow", Level.BROKEN: "bold red"}[finding.level]
    console.print(line, style=style, markup=False, soft_wrap=True)
