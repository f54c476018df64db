"""The handshake: which differences count, and what they do to the name of a worker's device."""

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("distributed")

from tasks.cluster import identity  # noqa: E402
from tasks.cluster.identity import differences, own_software, resource  # noqa: E402


def test_everything_that_must_be_the_same_is_compared():
    assert list(own_software()) == [
        "chess-snn", "sources", "python", "torch", "numpy", "numba", "distributed", "shards",
        "chess", "2048",
    ]


def test_the_same_software_differs_in_nothing():
    assert differences(dict(own_software())) == ""


@pytest.mark.parametrize("name", list(own_software()))
def test_each_difference_is_named_with_both_sides(name):
    ours = own_software()
    assert differences(ours | {name: "0.1"}) == f"{name} 0.1 ({ours[name]} here)"
    without = {key: value for key, value in ours.items() if key != name}
    assert differences(without) == f"{name} missing ({ours[name]} here)"


def test_another_build_of_torch_is_the_same_software(monkeypatch):
    found = {"torch": "2.13.0+cpu", "numpy": "2.4", "numba": "0.68", "distributed": "2026.8.0"}
    monkeypatch.setattr(identity.metadata, "version", found.__getitem__)
    cpu = own_software.__wrapped__()
    found["torch"] = "2.13.0+cu130"
    assert own_software.__wrapped__() == cpu
    assert cpu["torch"] == "2.13.0"


def test_a_device_is_called_by_its_role_and_software(monkeypatch):
    ours = resource("play")
    assert ours != resource("train")
    monkeypatch.setattr(identity, "own_software", lambda: {"chess-snn": "0.0.1"})
    assert resource("play") != ours
