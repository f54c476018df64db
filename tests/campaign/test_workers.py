"""How many workers play and how many processes train on machines that are values."""

import pytest

from chess_snn.campaign import load_config
from chess_snn.campaign.machine.slots import Machine
from chess_snn.campaign.machine.training_launch import choose_ranks, deal_ranks, training_gpus
from chess_snn.campaign.machine.workers import plan_workers, worker_bytes
from chess_snn.cores import num_cores
from chess_snn.devices import SIMULATED_GPUS, Device
from chess_snn.errors import ConfigError

GIB = 1 << 30
GAMES = 1000


def gpus(count: int, memory_bytes: int = 141 * GIB) -> tuple[Device, ...]:
    return tuple(
        Device("cuda", i, f"GPU-{i}", "NVIDIA H200", memory_bytes) for i in range(count)
    )


def machine(num_gpus: int = 0, cores: int = 16, memory_gib: float = 256.0) -> Machine:
    return Machine(gpus(num_gpus), tuple(range(cores)), int(memory_gib * GIB), "box-a")


def config(*settings: str):
    return load_config(settings=[f"execution.{setting}" for setting in settings])


def plan(where: Machine, *settings: str, num_games: int = GAMES):
    return plan_workers(config(*settings), where, num_games)


def devices_of(plan) -> list[int]:
    return [slot.device.index for slot in plan.slots]


def test_nine_workers_on_two_devices_are_lowered_to_eight():
    found = plan(machine(2), "workers=9")
    assert devices_of(found) == [0, 1] * 4
    assert found.notes == ("9 workers on 2 devices: lowered to 8, 4 each",)
    assert [slot.name for slot in found.slots[:3]] == [
        "box-a/gpu0-0", "box-a/gpu1-1", "box-a/gpu0-2",
    ]
    assert found.slots[2].site == found.slots[0].site == "GPU 0 (NVIDIA H200) of box-a"


def test_fewer_workers_than_devices_leave_some_without_work_and_say_so():
    found = plan(machine(4), "workers=3")
    assert devices_of(found) == [0, 1, 2]
    assert found.notes == ("3 workers on 4 devices: 1 of them has no work",)


def test_workers_a_device_and_chosen_gpus():
    found = plan(machine(6), "workers_per_device=3", "gpus=[0,2,5]")
    assert devices_of(found) == [0, 2, 5] * 3
    assert found.slots[1].environment()["CUDA_VISIBLE_DEVICES"] == "GPU-2"
    assert found.slots[1].machine_gpus == ("GPU-0", "GPU-2", "GPU-5")


def test_by_rule_two_workers_share_a_gpu_where_each_has_a_core():
    assert len(plan(machine(8, cores=64)).slots) == 16
    assert len(plan(machine(8, cores=15)).slots) == 8
    assert len(plan(machine(8, cores=4)).slots) == 8


def test_a_small_gpu_takes_one_worker():
    small = Machine(gpus(1, 6 * GIB), tuple(range(8)), 64 * GIB, "box-a")
    assert len(plan(small).slots) == 1


def test_no_more_workers_than_games_and_still_as_many_on_each_device():
    assert devices_of(plan(machine(4, cores=64), num_games=7)) == [0, 1, 2, 3]
    found = plan(machine(4, cores=64), num_games=3)
    assert devices_of(found) == [0, 1, 2]
    assert found.notes == (
        "4 GPUs, 1 of them without a worker: an iteration has 3 games "
        "(self_play.games_per_iteration)",
    )


@pytest.mark.parametrize(("machines", "num_gpus", "shards"), [
    (1, 1, 8), (1, 2, 12), (1, 8, 32), (2, 8, 32),
])
def test_the_gpu_preset_gives_every_gpu_work_in_every_iteration(machines, num_gpus, shards):
    preset = load_config("gpu")
    box = machine(num_gpus, cores=16 * num_gpus, memory_gib=128 * num_gpus)
    found = plan_workers(preset, box, preset.self_play.games_per_iteration)
    assert devices_of(found) == [*range(num_gpus)] * 2
    assert found.notes == ()
    workers = machines * len(found.players)
    assert preset.self_play.num_shards(workers) == shards
    assert shards % workers == 0
    games = preset.self_play.games_per_iteration // shards
    assert preset.self_play.concurrent_games // 2 <= games <= preset.self_play.games_per_shard


@pytest.mark.parametrize("preset", ["smoke", "cpu", "gpu", "smoke-2048", "cpu-2048"])
@pytest.mark.parametrize("workers", [1, 2, 3, 4, 8, 16, 32])
def test_every_preset_gives_every_worker_work(preset, workers):
    settings = load_config(preset).self_play
    shards = settings.num_shards(workers)
    assert shards % workers == 0
    assert shards * settings.games_per_shard >= settings.games_per_iteration
    assert settings.games_per_iteration / shards >= 8


def test_processors_have_a_worker_a_core():
    here = num_cores()
    found = plan(machine(cores=here), "device=cpu")
    assert [slot.cores for slot in found.slots] == [(i,) for i in range(here)]
    assert {slot.num_threads for slot in found.slots} == {1}


def test_workers_on_one_device_share_cores_and_memory_evenly():
    found = plan(machine(1, cores=8, memory_gib=100), "workers=4")
    assert [slot.cores for slot in found.slots] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert {slot.memory_bytes for slot in found.slots} == {int(100 * GIB * 0.9) // 4}


def test_more_workers_than_cores_share_cores():
    found = plan(machine(cores=2), "workers=5")
    assert [slot.cores for slot in found.slots] == [(0,), (1,), (0,), (1,), (0,)]


def test_unbound_workers_keep_to_no_core():
    found = plan(machine(cores=4), "workers=2", "bind_cores=false")
    assert [(slot.cores, slot.num_threads) for slot in found.slots] == [((), 2)] * 2


def test_self_play_on_the_processor_leaves_the_gpu_to_training():
    found = plan(machine(2, cores=9), "self_play_device=cpu", "workers=8")
    *players, trainer = found.slots
    assert [(slot.device.kind, slot.roles) for slot in players] == [("cpu", ("play",))] * 8
    assert (trainer.device.index, trainer.roles) == (0, ("train",))
    assert players[0].environment()["CUDA_VISIBLE_DEVICES"] == ""
    assert trainer.machine_gpus == ("GPU-0", "GPU-1")
    assert found.players == list(players)


def test_more_workers_than_memory_is_an_error_that_says_how_many_fit():
    with pytest.raises(ConfigError, match="64 .* 8"):
        plan(machine(memory_gib=4, cores=64), "workers=64")


def test_chosen_by_itself_the_number_fits_into_memory():
    assert len(plan(machine(2, cores=64)).slots) == 4
    few = plan(machine(2, cores=64, memory_gib=6.5))
    assert (len(few.slots), few.notes) == (2, ())
    (note,) = plan(machine(4, cores=64, memory_gib=6.5)).notes
    assert note.startswith("4 GPUs, 1 of them without a worker: memory has room for 3 workers")


def test_bounds_of_workers_that_come_to_more_than_the_memory_are_an_error():
    with pytest.raises(ConfigError, match=r"4 .*8\.0 GiB"):
        plan(machine(memory_gib=16), "workers=4", "worker_memory_mib=8192")
    found = plan(machine(memory_gib=16), "workers=2", "worker_memory_mib=1024")
    assert {slot.memory_bytes for slot in found.slots} == {GIB}


def test_a_worker_with_longer_searches_needs_more_memory():
    cpu = plan(machine()).slots[0].device
    long = load_config(settings=["search.simulations_last=800", "self_play.games_per_shard=256"])
    assert worker_bytes(long, cpu) > worker_bytes(load_config(), cpu) + 50 * (1 << 20)


def test_both_numbers_of_workers_contradict_each_other():
    with pytest.raises(ConfigError, match="workers_per_device"):
        config("workers=4", "workers_per_device=2")


@pytest.mark.parametrize("numbers", ["[0,0]", "[-1]"])
def test_gpus_are_different_numbers(numbers):
    with pytest.raises(ConfigError, match=r"execution\.gpus"):
        config(f"gpus={numbers}")


# How many processes train: one for each GPU, and no more than there are micro-batches.


def training_config(*settings):
    return load_config(settings=["training.batch_size=1024", "training.micro_batch=128", *settings])


@pytest.mark.parametrize(("gpus", "number"), [(0, 1), (1, 1), (2, 2), (6, 6), (8, 8)])
def test_every_gpu_trains_by_itself(gpus, number):
    assert choose_ranks(training_config(), gpus).number == number


def test_the_gpu_preset_trains_on_eight_gpus():
    assert choose_ranks(load_config("gpu"), 8).number == 8


def test_more_gpus_than_micro_batches_leave_some_idle_and_say_so():
    choice = choose_ranks(training_config("training.micro_batch=512"), 8)
    assert choice.number == 2
    assert "2 processes on a machine of 8 GPUs" in choice.why
    assert "training.micro_batch = 128 or less" in choice.why
    assert choose_ranks(training_config("training.micro_batch=128"), 8).number == 8
    assert choose_ranks(training_config(), 8, num_machines=2).number == 4
    assert choose_ranks(training_config("training.micro_batch=1024"), 8).number == 1


def test_what_is_set_is_taken():
    assert choose_ranks(training_config("execution.training_ranks=3"), 8).number == 3
    assert choose_ranks(training_config("execution.training_ranks=2"), 0).number == 2


def test_machines_take_as_many_as_they_have_gpus_and_the_largest_give_way():
    assert deal_ranks(training_config(), [2, 4]) == [2, 4]
    assert deal_ranks(training_config(), [0, 0]) == [1, 1]
    assert deal_ranks(training_config(), [8, 8]) == [4, 4]
    assert deal_ranks(training_config(), [2, 8]) == [2, 6]
    assert deal_ranks(training_config("execution.training_ranks=2"), [8, 1]) == [2, 2]


def test_nccl_needs_gpus():
    wanted = training_config("execution.training_backend=nccl")
    assert choose_ranks(wanted, 2).number == 2
    with pytest.raises(ConfigError, match="training_backend"):
        choose_ranks(wanted, 0)
    with pytest.raises(ConfigError, match=r'"nccl" .*execution\.device = "cpu"'):
        training_config("execution.training_backend=nccl", "execution.device=cpu")


def test_the_gpus_are_those_that_execution_names(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "8")
    assert len(training_gpus(training_config())) == 8
    assert training_gpus(training_config("execution.gpus=[2,5]")) == ("2", "5")
    assert training_gpus(training_config("execution.device=cpu")) == ()
    with pytest.raises(ConfigError, match="GPU 9"):
        training_gpus(training_config("execution.gpus=[9]"))


def test_machines_that_train_together_need_no_number_of_processes():
    loaded = load_config(settings=["cluster.training_machines=2", "cluster.trust_network=true"])
    assert loaded.execution.training_ranks == 0
