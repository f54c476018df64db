"""Networks in files, and files that are none."""

import errno
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from chess_snn.errors import CorruptDataError, UsageError
from chess_snn.nets import (
    build_network,
    load_network,
    net_config,
    network_digest,
    save_network,
    write_tensors,
)
from chess_snn.nets.model.weights import read_tensors

FULL_DISK = Path("/dev/full")
TINY = net_config("tiny", threshold=0.625)
CONFIGS = {
    "spiking": TINY, "baseline": TINY.baseline(),
    "rule planes": net_config("tiny", rule_planes=True),
    "targets": net_config("tiny", target_readout=True),
}


class Payload:
    """Unpickling it leaves a trace."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return (open, (str(self.trace), "w"))


@pytest.fixture
def stored(tmp_path, spec):
    path = tmp_path / "weights.safetensors"
    save_network(path, build_network(spec, TINY, 3))
    return path


def metadata_of(path):
    size = int.from_bytes(path.read_bytes()[:8], "little")
    return json.loads(path.read_bytes()[8 : 8 + size])["__metadata__"]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_round_trip(tmp_path, spec, positions, config):
    path = tmp_path / "n.safetensors"
    network = build_network(spec, config, 3).train()
    network(positions[:8].tensor())  # moves the running statistics
    save_network(path, network.to(memory_format=torch.channels_last))
    again = load_network(path)
    assert (again.spec, again.config) == (spec, config)
    assert network_digest(again) == network_digest(network)
    assert not again.training
    assert [file.name for file in tmp_path.iterdir()] == ["n.safetensors"]
    with torch.no_grad():
        expected, found = network.eval()(positions[:8].tensor()), again(positions[:8].tensor())
    torch.testing.assert_close(found.policy_logits_BA, expected.policy_logits_BA)
    torch.testing.assert_close(found.plies_left_B, expected.plies_left_B)


def test_numbers_of_16_bits_are_stored_in_16_bits(tmp_path, spec):
    network = build_network(spec, net_config("tiny"), 0)
    save_network(tmp_path / "whole", network)
    for tensor in network.state_dict().values():
        tensor.copy_(tensor.to(torch.float16) if tensor.is_floating_point() else tensor)
    save_network(tmp_path / "half", network)
    assert (tmp_path / "half").stat().st_size < 0.6 * (tmp_path / "whole").stat().st_size
    stored = load_network(tmp_path / "half")
    assert network_digest(stored) == network_digest(network)
    assert all(tensor.dtype == torch.float32 for tensor in stored.parameters())
    assert [metadata_of(tmp_path / name)["version"] for name in ("whole", "half")] == ["2", "3"]


def test_other_planes_and_readouts_are_another_network(spec):
    shapes = (net_config("tiny"), CONFIGS["rule planes"], CONFIGS["targets"])
    assert len({network_digest(build_network(spec, shape, 5)) for shape in shapes}) == 3


def test_the_digest_sees_names_and_every_bit(spec):
    network = build_network(spec, TINY, 3)
    before = network_digest(network)
    with torch.no_grad():
        bits = network.value.readout.bias.view(torch.int32)
        bits[0] ^= 1
    assert network_digest(network) != before
    with torch.no_grad():
        bits[0] ^= 1
    assert network_digest(network) == before


WRITE = """
import sys
from pathlib import Path
import torch
from chess_snn.nets import write_tensors

names = {str(number) for number in range(9)}  # in an order that follows PYTHONHASHSEED
tensors = {name: torch.full((3,), float(name)) for name in names}
write_tensors(Path(sys.argv[1]), tensors, {name: name * 2 for name in names})
"""


@pytest.mark.slow
def test_another_process_writes_equal_bytes_bug(tmp_path):
    path = tmp_path / "theirs.safetensors"
    subprocess.run(
        [sys.executable, "-c", WRITE, path], env=os.environ | {"PYTHONHASHSEED": "1"}, check=True
    )
    ours = {str(number): torch.full((3,), float(number)) for number in range(9)}
    metadata = {name: name * 2 for name in ours}
    write_tensors(tmp_path / "ours.safetensors", ours, metadata)
    assert path.read_bytes() == (tmp_path / "ours.safetensors").read_bytes()
    tensors, found = read_tensors(path)
    assert found == metadata
    assert all(torch.equal(tensors[name], ours[name]) for name in tensors | ours)


def test_a_file_of_the_library_itself_is_loaded(stored, spec):
    """Write weights as earlier versions of this program did: metadata in any order."""
    metadata = metadata_of(stored)
    save_file(load_file(stored), stored, dict(reversed(metadata.items())))
    assert network_digest(load_network(stored)) == network_digest(build_network(spec, TINY, 3))


@pytest.mark.parametrize("kept", [0, 4, 8, 100, 5000, -1])
def test_a_truncated_file_is_refused(stored, kept):
    stored.write_bytes(stored.read_bytes()[:kept])
    assert_refused(stored)


@pytest.mark.parametrize("save", [torch.save, lambda o, p: p.write_bytes(pickle.dumps(o))])
def test_a_pickle_is_refused_and_not_run(stored, tmp_path, save):
    trace = tmp_path / "trace"
    save({"weights": Payload(trace)}, stored)
    assert_refused(stored)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something"}, "is not a chess-snn network file"),
        ({"version": "1"}, "has version '1'"),
        ({"game": "checkers"}, "unknown game 'checkers'"),
        ({"config": "{"}, "does not describe its network"),
        ({"config": "[]"}, "does not describe its network"),
        ({"config": '{"channels": 0}'}, "net.channels must be"),
        ({"config": '{"colour": 1}'}, "colour"),
        ({"config": json.dumps({"channels": 16})}, "its config asks for"),
        ({"config": json.dumps({"blocks": 4})}, "does not hold the tensors"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(stored, change, message):
    save_file(load_file(stored), stored, metadata_of(stored) | change)
    assert message in assert_refused(stored)


def test_other_types_and_numbers_are_refused(stored):
    metadata, tensors = metadata_of(stored), load_file(stored)
    name = "value.readout.bias"
    save_file(tensors | {name: tensors[name].double()}, stored, metadata)
    assert "float64" in assert_refused(stored)
    save_file(tensors | {name: torch.full_like(tensors[name], torch.nan)}, stored, metadata)
    assert "not finite" in assert_refused(stored)
    save_file(tensors, stored)
    assert_refused(stored)



def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match="absent"):
        load_network(tmp_path / "absent.safetensors")


def assert_refused(path):
    with pytest.raises(CorruptDataError) as error:
        load_network(path)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.mark.skipif(not FULL_DISK.exists(), reason="there is no device that is always full")
def test_a_full_disk_is_an_error_of_the_system_bug():
    with pytest.raises(OSError, match="No space left on device") as raised:
        write_tensors(FULL_DISK, {"a": torch.zeros(3)})
    assert raised.value.errno == errno.ENOSPC
