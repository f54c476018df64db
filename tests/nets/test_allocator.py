"""Memory that a network frees stays in the process."""

import sys

import pytest

from chess_snn.games import get_game
from chess_snn.nets import build_network, keep_freed_memory, make_evaluator, net_config

resource = pytest.importorskip("resource", reason="page faults are counted on Unix only")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc only")
def test_evaluations_cause_next_to_no_page_faults() -> None:
    if not keep_freed_memory():
        pytest.skip("this C library has no mallopt")
    game = get_game("chess")
    batch = game.allocate(64)
    planes = game.planes(batch.state)
    network = build_network(game.spec, net_config("small"), seed=0)
    with make_evaluator(network) as evaluator:
        faults = []
        for _ in range(8):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            evaluator.evaluate(planes, batch.legal_actions, batch.num_legal)
            faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    # Threads reach their highest mark one after the other. One 64-position activation of `small`
    # alone is 512 pages.
    assert min(faults[3:]) < 512
