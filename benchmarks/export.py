"""Exported networks, run by other libraries on the same positions as ours.

A spike may differ where a charge lies within rounding of the threshold, since libraries add the
same numbers in another order. Such ties, and the spikes that follow from them, are counted.
"""

import importlib
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import torch
import typer
from torch import Tensor

from benchmarks.harness import Quick, Report, benchmark
from benchmarks.nir_readers import (
    READERS,
    SpikeDifferences,
    expect,
    missing_packages,
    run_graph,
)
from benchmarks.random_data import Positions, random_positions
from chess_snn.api.network import load
from chess_snn.campaign.models.exporting import export_for_others
from chess_snn.known import SHIPPED_CHESS, Format
from chess_snn.nets import InferenceOutput, Network, freeze
from chess_snn.nets.analysis.folded_layers import INPUT, fold_layers

MOST_ROUNDING: Final = 1e-4
"""Difference of logits where all spikes agree, and of charges at the threshold."""
_SAME_MOVES: Final = 0.99
_BATCH: Final = 100
_FEW: Final = 32


@dataclass(slots=True)
class Comparison:
    """Answers of a library to positions, beside our network in float32."""

    positions: int = 0
    same_moves: int = 0
    """Positions in which the legal action with the largest logit is the same."""
    largest_difference: float = 0.0
    """Difference of logits of legal actions and of the value."""
    largest_with_same_spikes: float = 0.0
    """The same, over positions in which all spikes agree."""
    off_positions: int = 0
    """Positions with spikes that differ."""
    spikes: SpikeDifferences = field(default_factory=SpikeDifferences)

    def add(
        self, asked: Positions, ours: InferenceOutput, policy_BA: Tensor, value_BV: Tensor,
        is_off_B: Tensor,
    ) -> None:
        """Count B positions, of which ``is_off_B`` have spikes that differ."""
        ours_BL, theirs_BL = (
            _legal(asked, logits) for logits in (ours.policy_logits_BA, policy_BA)
        )
        difference_B = torch.maximum(
            (ours_BL - theirs_BL).nan_to_num(0.0).abs().amax(1),
            (ours.value_logits_BV - value_BV).abs().amax(1),
        )
        self.positions += len(asked)
        self.same_moves += int((ours_BL.argmax(1) == theirs_BL.argmax(1)).sum())
        self.off_positions += int(is_off_B.sum())
        self.largest_difference = max(self.largest_difference, float(difference_B.max()))
        self.largest_with_same_spikes = max(
            self.largest_with_same_spikes, float((difference_B * ~is_off_B).max())
        )


def compare_nir(network: Network, positions: Positions, name: str, folder: Path) -> Comparison:
    """The library ``name``, which reads the NIR files in ``folder``, on ``positions``."""
    heads = [READERS[name](folder / f"{head}.nir") for head in ("policy", "value")]
    layers, found = fold_layers(network), Comparison()
    for asked in _batches(positions):
        planes_BPHW = asked.tensor(network).contiguous()
        expected = expect(network, layers, planes_BPHW)
        policy, value = (run_graph(head, planes_BPHW, network.config.ticks) for head in heads)
        # The trunk, which both have, is counted once.
        is_off_B = found.spikes.count(expected, value.spikes | policy.spikes)
        found.add(asked, expected.answer, policy.logits_BA, value.logits_BA, is_off_B)
    return found


def compare_onnx(network: Network, positions: Positions, folder: Path) -> Comparison:
    """onnxruntime, which reads the ONNX file in ``folder``; its spikes are not seen."""
    runtime: Any = importlib.import_module("onnxruntime")
    session = runtime.InferenceSession(folder / "network.onnx")
    ours, found = freeze(network, "fp32"), Comparison()
    for asked in _batches(positions):
        planes_BPHW = asked.tensor(network).contiguous()
        with torch.inference_mode():
            expected = ours(planes_BPHW)
        policy, value = map(torch.from_numpy, session.run(None, {INPUT: planes_BPHW.numpy()}))
        found.add(asked, expected, policy, value, torch.zeros(len(asked), dtype=torch.bool))
    return found


def run(
    report: Report,
    model: Annotated[str, typer.Option(help="A network of chess.")] = SHIPPED_CHESS,
    positions: Annotated[int, typer.Option(help="How many, of random games.")] = 1000,
    quick: Quick = False,
) -> None:
    """Exported networks in other libraries: same spikes, logits and moves.

    python -m benchmarks export --model campaigns/cpu-001@champion
    """
    network = load(model, game="chess").network
    config = network.config
    asked = random_positions(_FEW if quick else positions)
    report.note(
        f"{model}: {config.blocks}x{config.channels} {config.activation}, {config.ticks} ticks; "
        f"{len(asked):,} positions"
    )
    works: dict[str, tuple[Format, Callable[[Path], Comparison]]] = {
        "onnxruntime": (Format.ONNX, partial(compare_onnx, network, asked))
    }
    for name in READERS if config.is_spiking else ():
        works[name] = Format.NIR, partial(compare_nir, network, asked, name)
    for name, (file_format, compare) in works.items():
        if missing := missing_packages(name):
            report.note(f"{', '.join(missing)} NOT installed (docs/spikes.md): no {name}.")
            continue
        report.progress(f"  {name}")
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "exported"
            export_for_others(network, folder, file_format, {})
            _report(report, name, compare(folder), has_spikes=file_format is Format.NIR)


def _report(report: Report, name: str, found: Comparison, *, has_spikes: bool) -> None:
    report.add(f"{name}, same move", found.same_moves / found.positions, "share",
               at_least=_SAME_MOVES)
    report.add(f"{name}, largest logit difference", found.largest_difference, "")
    if has_spikes:
        spikes = found.spikes
        report.add(f"{name}, spikes compared", spikes.spikes, "spikes")
        report.add(f"{name}, the same, where all spikes agree", found.largest_with_same_spikes, "",
                   at_most=MOST_ROUNDING)
        report.add(f"{name}, positions with other spikes", found.off_positions, "positions")
        report.add(f"{name}, ties", spikes.ties, "spikes")
        report.add(f"{name}, spikes that follow from them", spikes.following, "spikes")
        report.add(f"{name}, a tie's largest distance", spikes.farthest_tie, "of charge",
                   at_most=MOST_ROUNDING)


def _legal(asked: Positions, logits_BA: Tensor) -> Tensor:
    """Logits [B, M] of legal actions; -inf behind each list."""
    is_behind = np.arange(asked.legal_actions.shape[1]) >= asked.num_legal[:, None]
    actions = torch.from_numpy(np.where(is_behind, 0, asked.legal_actions).astype(np.int64))
    return logits_BA.gather(1, actions).masked_fill(torch.from_numpy(is_behind), -torch.inf)


def _batches(positions: Positions) -> list[Positions]:
    return [positions[start : start + _BATCH] for start in range(0, len(positions), _BATCH)]


command = benchmark("export", run)
