"""One run a campaign folder: a second deployed run of a campaign waits for the first to end.

The folder's lock refuses a second writer; a run that was asked for on Prefect's page should wait
instead. So each campaign has a concurrency limit of one in Prefect, named as its tag.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from prefect import get_client
from prefect.concurrency.sync import concurrency
from prefect.runtime import deployment, flow_run

from flows.stale_runs import campaign_tag

LEASE_S: Final = 60.0
"""A run that was killed holds its place for so long, at most."""


@contextmanager
def one_run_a_folder(
    campaign_id: str, logger: "logging.Logger | logging.LoggerAdapter[logging.Logger]"
) -> Iterator[None]:
    """Enter the block once no other deployed run of the campaign is in it.

    Where the run is of no deployment, nothing is waited for: a terminal wants to be told.
    """
    if deployment.id is None:
        yield
        return
    name = campaign_tag(campaign_id)
    with get_client(sync_client=True) as client:
        client.upsert_global_concurrency_limit_by_name(name, limit=1)
        if client.read_global_concurrency_limit_by_name(name).active_slots:
            logger.info("another run has this campaign; waiting for it to end")
    with concurrency(
        name, lease_duration=LEASE_S,
        # The server may be away for a while; the folder's lock still keeps others out.
        raise_on_lease_renewal_failure=False,
    ):
        _tag_this_run(name)
        yield


def _tag_this_run(tag: str) -> None:
    """Let a later run find this one, should it be killed and stay open; not before its turn.

    See :func:`flows.stale_runs.close_stale_flow_runs`, which takes open runs for killed ones.
    """
    with get_client(sync_client=True) as client:
        client.update_flow_run(UUID(flow_run.id), tags=sorted({*flow_run.tags, tag}))
