"""What every settings class shares: range checks whose message names the setting.

A settings class is a frozen dataclass owned by the component that reads it, with a sentence of
documentation under each field, and calls :func:`check_range` or :func:`check_choice` in
``__post_init__``. It can then be built by hand, by a test or by the campaign's loader, and says
the same thing about a bad value in all three.
"""

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
