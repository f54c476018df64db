"""How workers come by the campaign folder: they see it themselves, or its files are brought."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from distributed import Client

from chess_snn.campaign import CampaignFolder
from chess_snn.errors import CampaignError, ClusterError
from tasks.file_relay import files_served


@contextmanager
def folder_access(
    client: Client, folder: CampaignFolder, workers: Sequence[str]
) -> Iterator[None]:
    """Let workers work on ``folder``, as ``cluster.shared_storage`` says, for the block's length.

    Args:
        client: of their scheduler.
        folder: of the campaign.
        workers: addresses of those that are there; others may come.

    Raises:
        ClusterError: they should see the folder themselves, and some do not.
    """
    cluster = folder.config.cluster
    if cluster.shared_storage:
        if cluster.kind != "local":
            check_seen(client, folder, workers)
        yield
        return
    with files_served(client, folder):
        yield


def check_seen(client: Client, folder: CampaignFolder, workers: Sequence[str]) -> None:
    """Return if each of ``workers`` sees ``folder``, under the same path.

    Raises:
        ClusterError: names one that does not.
    """
    answers = client.run(
        _sees, str(folder.path), folder.campaign_id, workers=list(workers), on_error="return"
    )
    for address, answer in sorted(answers.items()):
        if answer is not True:
            raise ClusterError(
                f"worker {address} does not see the campaign in {folder.path}: {answer}; put the "
                "folder where all machines have it under this path, or set cluster.shared_storage "
                "= false"
            )


def _sees(directory: str, campaign_id: str) -> bool | str:
    """Whether this process does; or why not."""
    try:
        found = CampaignFolder.open(Path(directory)).campaign_id
    except CampaignError:
        return "nothing is there"
    return True if found == campaign_id else "another campaign is there"
