"""What this machine has that campaigns need, and what is wrong with it."""

from chess_snn.doctor.findings import Finding, Level
from chess_snn.doctor.machine import check_machine, check_storage
from chess_snn.doctor.network import Addresses, check_network
from chess_snn.doctor.software import check_software

__all__ = [
    "Addresses",
    "Finding",
    "Level",
    "check_machine",
    "check_network",
    "check_software",
    "check_storage",
]
