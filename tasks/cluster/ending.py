"""How a program that stays is told to end."""

import asyncio
import signal
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any


async def end_of_program(*others: Awaitable[object]) -> bool:
    """Wait for SIGINT, SIGTERM, or for all of ``others`` to be done; whether a signal came."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    signalled: asyncio.Future[Any] = asyncio.ensure_future(told.wait())
    done: asyncio.Future[Any] = asyncio.gather(*others)
    try:
        await asyncio.wait([signalled, done], return_when=asyncio.FIRST_COMPLETED)
        return signalled.done()
    finally:
        for waiting in (signalled, done):
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
