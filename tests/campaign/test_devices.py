"""Which devices are found and chosen, without a GPU: the machine is a value."""

import pytest

from chess_snn.devices import (
    ASSIGNED_KIND,
    SIMULATED_GPUS,
    Device,
    choose_devices,
    find_devices,
    gpu_tokens,
    name_devices,
    processor,
    visible_gpus,
)
from chess_snn.errors import ConfigError


def gpus(count: int) -> list[Device]:
    return [Device("cuda", i, str(i), "NVIDIA H200", 141 << 30) for i in range(count)]


def test_all_gpus_are_taken_unless_some_are_named():
    assert choose_devices("auto", (), gpus(3)) == gpus(3)
    assert choose_devices("auto", (2, 0), gpus(3)) == [gpus(3)[2], gpus(3)[0]]


def test_without_gpus_the_processor_works():
    (device,) = choose_devices("auto", (), [])
    assert not device.is_gpu
    assert device.shares_cores
    assert choose_devices("cpu", (), gpus(2)) == [device]


def test_a_gpu_that_does_not_exist_is_named_with_those_that_do():
    with pytest.raises(ConfigError) as error:
        choose_devices("auto", (0, 7), gpus(2))
    assert str(error.value).startswith(
        "there is no GPU 7: this machine has 0 (NVIDIA H200), 1 (NVIDIA H200);"
    )


@pytest.mark.parametrize(("choice", "wanted"), [("auto", (7,)), ("cuda", (0,)), ("cuda", ())])
def test_a_gpu_on_a_machine_without_any_is_an_error(choice, wanted):
    with pytest.raises(ConfigError, match="torch sees no"):
        choose_devices(choice, wanted, [])


def test_gpus_and_the_processor_alone_contradict_each_other():
    with pytest.raises(ConfigError, match=r"execution\.gpus = 1 and execution\.device"):
        choose_devices("cpu", (1,), gpus(2))


@pytest.mark.parametrize(("visible", "tokens"), [
    (None, ["0", "1"]), ("3, 5", ["3", "5"]), ("GPU-8f,GPU-11,GPU-77", ["GPU-8f", "GPU-11"]),
])
def test_gpus_keep_the_names_that_cuda_visible_devices_has_for_them(visible, tokens):
    assert gpu_tokens(visible, 2) == tokens


def test_devices_are_named_in_runs():
    eight, other = gpus(8), Device("cuda", 9, "9", "NVIDIA L4", 24 << 30)
    assert name_devices(eight) == "GPUs 0-7 (NVIDIA H200)"
    assert name_devices([eight[3], eight[3]]) == "GPU 3 (NVIDIA H200)"
    found = name_devices([other, *eight[4:6], eight[0], eight[2]])
    assert found == "GPUs 0, 2, 4-5 (NVIDIA H200) and GPU 9 (NVIDIA L4)"
    assert name_devices([processor()]) == "the processor"


def test_simulated_gpus_are_dealt_out_and_compute_on_the_processor(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "2")
    found = visible_gpus()
    assert [str(gpu) for gpu in found] == ["GPU 0 (simulated)", "GPU 1 (simulated)"]
    assert all(gpu.is_gpu and gpu.shares_cores for gpu in found)
    assert find_devices("auto") == find_devices("cuda") == ["cpu"]


@pytest.mark.parametrize("text", ["two", "-1", "", "4096"])
def test_a_wrong_number_of_simulated_gpus_is_an_error(monkeypatch, text):
    monkeypatch.setenv(SIMULATED_GPUS, text)
    with pytest.raises(ConfigError, match=SIMULATED_GPUS):
        visible_gpus()


def test_a_worker_that_was_given_the_processor_looks_for_no_gpu(monkeypatch):
    monkeypatch.setenv(ASSIGNED_KIND, "cpu")
    assert find_devices("auto") == find_devices("cuda") == ["cpu"]
