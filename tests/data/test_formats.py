from pathlib import Path

import pytest

from chess_snn.data import StoredFormat, is_own_digest, with_digest
from chess_snn.errors import UnknownVersionError

PLACE = Path("/campaign/thing.json")

FORMAT = StoredFormat("thing", version=3, upgrades={
    1: lambda body: body | {"since_2": len(body)},
    2: lambda body: body | {"since_3": sorted(body)},
})


def test_every_version_that_is_read_comes_out_as_the_present_one():
    assert FORMAT.upgraded({"a": 0}, 1, PLACE) == {
        "a": 0, "since_2": 1, "since_3": ["a", "since_2"],
    }
    assert FORMAT.upgraded({"a": 0, "since_2": 9}, 2, PLACE)["since_3"] == ["a", "since_2"]
    assert FORMAT.upgraded({"a": 0}, 3, PLACE) == {"a": 0}


def test_an_upgrade_leaves_what_was_read_as_it_is():
    body = {"a": 0}
    FORMAT.upgraded(body, 1, PLACE)
    assert body == {"a": 0}


@pytest.mark.parametrize(("version", "hint"), [
    (4, "a newer program wrote it: update this one, or go on with that one"),
    (0, "open it with the program that wrote it"),
    (-1, "open it with the program that wrote it"),
    ("3", "open it with the program that wrote it"),
    (2.0, "open it with the program that wrote it"),
    (True, "open it with the program that wrote it"),
    (None, "open it with the program that wrote it"),
])
def test_any_other_version_is_refused_by_name(version, hint):
    with pytest.raises(UnknownVersionError) as refused:
        FORMAT.check(version, PLACE)
    assert str(refused.value) == (
        f"{PLACE}: thing version {version!r} is unknown, this program reads versions 1 to 3; "
        f"{hint}"
    )


def test_a_format_of_one_version_says_so():
    with pytest.raises(UnknownVersionError, match="version 1;"):
        StoredFormat("plan", version=1).check(2, PLACE)


def test_a_gap_between_versions_is_a_bug():
    with pytest.raises(AssertionError):
        StoredFormat("thing", version=3, upgrades={1: dict})


def test_a_digest_is_of_everything_else_whatever_its_order():
    signed = with_digest({"b": [1.5, None], "a": "é"})
    assert is_own_digest(signed)
    assert is_own_digest(dict(reversed(signed.items())))
    for changed in (
        signed | {"a": "e"}, signed | {"c": 0}, signed | {"b": [1.5]}, signed | {"digest": "0"},
        {"a": "é", "digest": signed["digest"]}, {"a": "é"},
    ):
        assert not is_own_digest(changed)
