"""How many processes train: one for each GPU, and no more than there are micro-batches."""

import pytest

from chess_snn.campaign import load_config
from chess_snn.campaign.machine.training_launch import choose_ranks, deal_ranks, training_gpus
from chess_snn.devices import SIMULATED_GPUS
from chess_snn.errors import ConfigError


def config(*settings):
    return load_config(settings=["training.batch_size=1024", "training.micro_batch=128", *settings])


@pytest.mark.parametrize(("gpus", "number"), [(0, 1), (1, 1), (2, 2), (6, 6), (8, 8)])
def test_every_gpu_trains_by_itself(gpus, number):
    assert choose_ranks(config(), gpus).number == number


def test_the_gpu_preset_trains_on_eight_gpus():
    assert choose_ranks(load_config("gpu"), 8).number == 8


def test_more_gpus_than_micro_batches_leave_some_idle_and_say_so():
    choice = choose_ranks(config("training.micro_batch=512"), 8)
    assert choice.number == 2
    assert "2 processes on a machine of 8 GPUs" in choice.why
    assert "training.micro_batch = 128 or less" in choice.why
    assert choose_ranks(config("training.micro_batch=128"), 8).number == 8
    assert choose_ranks(config(), 8, num_machines=2).number == 4
    assert choose_ranks(config("training.micro_batch=1024"), 8).number == 1


def test_what_is_set_is_taken():
    assert choose_ranks(config("execution.training_ranks=3"), 8).number == 3
    assert choose_ranks(config("execution.training_ranks=2"), 0).number == 2


def test_machines_take_as_many_as_they_have_gpus_and_the_largest_give_way():
    assert deal_ranks(config(), [2, 4]) == [2, 4]
    assert deal_ranks(config(), [0, 0]) == [1, 1]
    assert deal_ranks(config(), [8, 8]) == [4, 4]
    assert deal_ranks(config(), [2, 8]) == [2, 6]
    assert deal_ranks(config("execution.training_ranks=2"), [8, 1]) == [2, 2]


def test_nccl_needs_gpus():
    wanted = config("execution.training_backend=nccl")
    assert choose_ranks(wanted, 2).number == 2
    with pytest.raises(ConfigError, match='training_backend = "nccl" needs GPUs'):
        choose_ranks(wanted, 0)
    with pytest.raises(ConfigError, match=r'"nccl" needs GPUs, and execution\.device = "cpu"'):
        config("execution.training_backend=nccl", "execution.device=cpu")


def test_the_gpus_are_those_that_execution_names(monkeypatch):
    monkeypatch.setenv(SIMULATED_GPUS, "8")
    assert len(training_gpus(config())) == 8
    assert training_gpus(config("execution.gpus=[2,5]")) == ("2", "5")
    assert training_gpus(config("execution.device=cpu")) == ()
    with pytest.raises(ConfigError, match="there is no GPU 9"):
        training_gpus(config("execution.gpus=[9]"))


def test_machines_that_train_together_need_no_number_of_processes():
    loaded = load_config(settings=["cluster.training_machines=2", "cluster.trust_network=true"])
    assert loaded.execution.training_ranks == 0
