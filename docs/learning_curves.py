"""Learning curves of campaigns, from their folders alone, as one figure.

    python docs/learning_curves.py campaigns/cpu-001 campaigns/cpu-002 --out docs/curves.svg

Needs matplotlib, which comes with the extra `orchestration`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from chess_snn.campaign import CampaignFolder, read_receipts

SECONDS_AN_HOUR = 3600.0

PANELS: dict[str, dict[str, str]] = {
    "share of games": {
        "self_play/ordinary_draw_rate": "ordinary games drawn or cut",
        "self_play/truncated_rate": "all games truncated",
        "self_play/practice_win_rate": "practice games won",
        "evaluation/conversion_rate": "won positions converted",
    },
    "plies a game": {
        "self_play/ordinary_plies_mean": "ordinary games",
        "self_play/plies_mean": "all games",
    },
    "loss, nats": {
        "train/holdout_value_loss": "value, games not trained on",
        "train/policy_loss": "policy",
        "train/target_entropy": "entropy of the policy target",
    },
    "score in evaluation": {
        "evaluation/score_random": "against random",
        "evaluation/score_greedy": "against greedy",
        "evaluation/score_earlier": "against itself earlier",
    },
}
"""Curves by panel: metric and what it is called in the figure."""

LINE_STYLES = ("-", "--", ":", "-.")
"""One a campaign."""


def main() -> None:
    """Draw the campaigns named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("campaigns", nargs="+", type=Path, help="campaign folders, at most 4")
    parser.add_argument("--out", type=Path, required=True, help="file to write: .svg, .png, .pdf")
    arguments = parser.parse_args()
    if len(arguments.campaigns) > len(LINE_STYLES):
        parser.error(f"at most {len(LINE_STYLES)} campaigns can be told apart")
    draw([CampaignFolder.open(path) for path in arguments.campaigns], arguments.out)


def draw(campaigns: Sequence[CampaignFolder], out: Path) -> None:
    """Write the figure to ``out``; its suffix says in which format."""
    figure, panels = plt.subplots(2, 2, figsize=(11, 7), layout="constrained")
    for panel, (title, curves) in zip(panels.flat, PANELS.items(), strict=True):
        for campaign, style in zip(campaigns, LINE_STYLES, strict=False):
            _draw_panel(panel, campaign, style, curves)
        panel.set_title(title)
        panel.set_xlabel("hours")
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    plt.close(figure)


def _draw_panel(panel: Axes, campaign: CampaignFolder, style: str, curves: dict[str, str]) -> None:
    rows = [receipt.metrics() for receipt in read_receipts(campaign)]
    for colour, (metric, label) in enumerate(curves.items()):
        points = [
            (row["campaign/elapsed_s"] / SECONDS_AN_HOUR, row[metric])
            for row in rows if metric in row
        ]
        if not points:
            print(f"{campaign.path} recorded no {metric}: left out", file=sys.stderr)
        else:
            panel.plot(
                *zip(*points, strict=True), style, color=f"C{colour}",
                label=f"{label}, {campaign.name}",
            )


if __name__ == "__main__":
    main()
