"""Which network interface of this machine has an address."""

import fcntl
import socket
import struct
import sys
from typing import Final

_GET_ADDRESS: Final = 0x8915
"""SIOCGIFADDR of ``<linux/sockios.h>``."""
_REQUEST: Final = "16sH2x4s16x"
"""``struct ifreq``: a name, and within ``struct sockaddr_in`` family, port and address."""


def interface_of(address: str) -> str | None:
    """Name of the interface whose first IPv4 address is ``address``; None where there is none.

    Nor is one found off Linux, nor of an address that is a name or IPv6.
    """
    if sys.platform != "linux":
        return None
    try:
        wanted = socket.inet_aton(address)
    except OSError:
        return None
    return next((name for _, name in socket.if_nameindex() if _address_of(name) == wanted), None)


def _address_of(interface: str) -> bytes | None:
    """Its four octets; None where it has none."""
    request = struct.pack(_REQUEST, interface.encode(), socket.AF_INET, bytes(4))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            answer = fcntl.ioctl(any_socket.fileno(), _GET_ADDRESS, request)
        except OSError:
            return None
    _, _, octets = struct.unpack(_REQUEST, answer)
    return bytes(octets)
