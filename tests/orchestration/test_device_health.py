"""Which device is left out, on paper."""

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")

from tasks.cluster.devices import STRIKES, DeviceHealth  # noqa: E402

THREE = {"GPU 0", "GPU 1", "GPU 2"}


def test_a_device_that_fails_again_and_again_is_retired_once():
    health = DeviceHealth()
    assert [health.failed("GPU 1", THREE) for _ in range(STRIKES)] == [False, False, True]
    assert not health.failed("GPU 1", THREE)
    assert health.retired == {"GPU 1"}


def test_a_success_takes_all_strikes_away():
    health = DeviceHealth()
    for _ in range(10):
        assert not health.failed("GPU 1", THREE)
        assert not health.failed("GPU 1", THREE)
        health.succeeded("GPU 1")
    assert health.retired == set()


def test_strikes_of_one_device_are_not_those_of_another():
    health = DeviceHealth()
    for device in sorted(THREE) * (STRIKES - 1):
        assert not health.failed(device, THREE)


def test_the_last_device_is_never_retired():
    health = DeviceHealth()
    assert not any(health.failed("GPU 0", {"GPU 0"}) for _ in range(10))
    both = {"GPU 0", "GPU 1"}
    assert health.failed("GPU 0", both)
    assert not any(health.failed("GPU 1", both) for _ in range(10))


def test_a_device_whose_workers_are_all_dead_at_the_moment_may_be_retired():
    health = DeviceHealth()
    for _ in range(STRIKES - 1):
        health.failed("GPU 0", {"GPU 1"})
    assert health.failed("GPU 0", {"GPU 1"})
