"""How far a measured score may be from the true one."""

from statistics import NormalDist

from chess_snn.config import check_range


def wilson_interval(
    score: float, num_trials: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Confidence interval of a mean of independent trials, each with a result in [0, 1].

    Wilson's score interval (Wilson 1927, "Probable inference, the law of succession, and
    statistical inference", JASA 22) for results 0 and 1. Among all results in [0, 1] with mean p,
    those have the largest variance, p (1 - p); so with draws, or with a pair of games as one
    trial, the interval is wider than it need be and never too narrow on that account.

    At a score of 0 or 1 only one bound says anything, and it is the exact one-sided one: had the
    mean been p, n results of 0 would have probability (1 - p)^n at most (Hanley & Lippman-Hand
    1983, "If nothing goes wrong, is everything all right?", JAMA 249).

    Args:
        score: mean result in [0, 1].
        num_trials: number of *independent* trials, >= 1. The two games from one opening are one.
        confidence: in (0, 1).

    Returns:
        (low, high) with 0 <= low <= score <= high <= 1.

    Raises:
        ConfigError: an argument is out of its range.
    """
    check_range("score", score, ge=0.0, le=1.0)
    check_range("num_trials", num_trials, ge=1)
    check_range("confidence", confidence, gt=0.0, lt=1.0)
    if score in {0.0, 1.0}:
        error: float = 1.0 - (1.0 - confidence) ** (1.0 / num_trials)
        return (0.0, error) if score == 0.0 else (1.0 - error, 1.0)
    z_squared_over_n = NormalDist().inv_cdf((1.0 + confidence) / 2.0) ** 2 / num_trials
    centre = (score + z_squared_over_n / 2.0) / (1.0 + z_squared_over_n)
    variance_term = score * (1.0 - score) * z_squared_over_n + z_squared_over_n**2 / 4.0
    half_width = variance_term**0.5 / (1.0 + z_squared_over_n)
    return centre - half_width, centre + half_width
