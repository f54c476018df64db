import itertools
import threading

import pytest

from chess_snn.training.batch import load_ahead

AHEAD = pytest.mark.parametrize("ahead", [0, 1, 3])


@AHEAD
def test_items_come_in_order_and_no_more_are_made(ahead):
    source = itertools.count()
    assert list(load_ahead(lambda: next(source), 7, ahead)) == list(range(7))
    assert next(source) == 7
    assert list(load_ahead(lambda: next(source), 0, ahead)) == []
    assert next(source) == 8


def test_items_are_made_while_one_is_in_use():
    made = [threading.Event() for _ in range(4)]
    source = itertools.count()

    def prepare():
        index = next(source)
        made[index].set()
        return index

    items = load_ahead(prepare, 4, ahead=2)
    assert next(items) == 0
    assert made[2].wait(10)
    assert not made[3].is_set()
    assert list(items) == [1, 2, 3]


@AHEAD
def test_a_failure_is_raised_in_its_turn(ahead):
    source = itertools.count()

    def prepare():
        index = next(source)
        if index == 2:
            raise OSError("gone")
        return index

    items = load_ahead(prepare, 5, ahead)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(OSError, match="gone"):
        next(items)


def test_leaving_early_ends_the_thread():
    items = load_ahead(lambda: 0, 1000, ahead=2)
    next(items)
    items.close()
    assert not [t for t in threading.enumerate() if t.name.startswith("load-ahead")]
