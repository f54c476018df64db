"""Range checks of arguments and options, whose messages name them."""

from collections.abc import Collection

from chess_snn.errors import ConfigError


def check_range(
    setting: str, value: float, *, ge: float | None = None, gt: float | None = None,
    le: float | None = None, lt: float | None = None,
) -> None:
    """Raise ConfigError unless ``value`` satisfies every bound given; NaN satisfies none."""
    bounds = [
        (ge, ">=", ge is None or value >= ge),
        (gt, ">", gt is None or value > gt),
        (le, "<=", le is None or value <= le),
        (lt, "<", lt is None or value < lt),
    ]
    if all(holds for _, _, holds in bounds):
        return
    wanted = " and ".join(f"{sign} {bound:g}" for bound, sign, _ in bounds if bound is not None)
    raise ConfigError(f"{setting} must be {wanted}, got {value}")


def check_choice(setting: str, value: str, choices: Collection[str]) -> None:
    """Raise ConfigError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ConfigError(f"{setting} must be one of {', '.join(choices)}, got {value!r}")
