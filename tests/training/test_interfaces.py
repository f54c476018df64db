"""Which network interface has an address."""

import sys

import pytest

from chess_snn.training.interfaces import interface_of


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's kernel")
def test_loopback_has_its_address():
    assert interface_of("127.0.0.1") == "lo"


@pytest.mark.parametrize("address", ["", "box-a", "::1", "192.0.2.123", "127.0.0.1.5"])
def test_an_address_that_no_interface_has_has_none(address):
    assert interface_of(address) is None
