"""One writer a campaign: an operating-system lock that dies with its holder."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.data import utc_now
from chess_snn.data.plain_files import open_in_place
from chess_snn.errors import CampaignError, CampaignLockedError


@contextmanager
def campaign_lock(folder: CampaignFolder) -> Iterator[None]:
    """Be the campaign's only writer for the length of the block.

    The kernel drops the lock when the process ends, however it ends; the file stays and names the
    last holder.

    Raises:
        CampaignLockedError: another process is writing it; the message names that process.
        CampaignError: the lock file cannot be written or locked.
    """
    try:
        descriptor = open_in_place(folder.lock_file, os.O_RDWR)
    except OSError as error:
        raise CampaignError(
            f"cannot write {folder.lock_file}: {error.strerror}; correct its permissions, or "
            "delete it"
        ) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CampaignLockedError(
                f"campaign {folder.path} is being written by {_holder(descriptor)}; wait for it, "
                "or stop it and resume"
            ) from None
        except OSError as error:
            raise CampaignError(
                f"cannot lock {folder.lock_file}: {error.strerror}; put the campaign on a disk "
                "with locks"
            ) from error
        try:
            _write_holder(descriptor)
        except OSError as error:
            raise CampaignError(
                f"cannot write {folder.lock_file}: {error.strerror}; make room on that disk"
            ) from error
        yield
    finally:
        os.close(descriptor)


def _write_holder(descriptor: int) -> None:
    holder = {"host": socket.gethostname(), "pid": os.getpid(), "since": utc_now()}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _holder(descriptor: int) -> str:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {holder['pid']} on {holder['host']} since {holder['since']}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "a process that is just starting"
