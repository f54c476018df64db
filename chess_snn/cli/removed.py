"""Commands that are gone, and what to use instead: the only place that knows their names."""

from typing import Final

REMOVED: Final[dict[str, str]] = {
    "bench": "`python -m benchmarks` in a clone",
    "campaign restore": "`rclone` or `aws s3 sync`, as in docs/reliability.md",
    "deploy": "`chess-snn up`, which registers the deployment",
    "mates": "`chess-snn analyse`, or `python -m benchmarks mates` in a clone",
    "scores": "`chess-snn match`, which compares points on the same seeds",
    "train": "`chess-snn campaign resume`, or torchrun as in docs/cluster.md",
    "ladder": "`chess-snn rate`, or the table in docs/ratings.md",
    "ladder rate": "`chess-snn rate`",
    "ladder make": "`python -m benchmarks ladder` in a clone",
    "ratings": "`chess-snn campaign status --ratings`",
    "results": "`chess-snn campaign status`, with --csv or --json for every figure",
}
"""The words of a removed command after ``chess-snn``, and what its user types now."""


def replacement(arguments: list[str]) -> tuple[str, str] | None:
    """Return a removed command that ``arguments`` begin with, and its replacement.

    The longest name wins, so that a group can be gone while one of its commands has a successor.
    None if the command is not a removed one.
    """
    for length in range(min(len(arguments), 3), 0, -1):
        name = " ".join(arguments[:length])
        if name in REMOVED:
            return name, REMOVED[name]
    return None
