"""``chess-snn campaign restore``: a campaign folder anew, from its copy in an object store."""

from pathlib import Path
from typing import Annotated

import typer

from chess_snn.campaign import read_receipts
from chess_snn.campaign.configuration.pace import StorageSettings
from chess_snn.campaign.copies.mirror import open_store
from chess_snn.campaign.copies.mirror import restore as restore_campaign
from chess_snn.cli.console import print_message, work_bar


def restore(
    url: Annotated[str, typer.Argument(help="Of the copy: s3://BUCKET/PREFIX.")],
    dir: Annotated[Path, typer.Option(help="New folder.")],  # the option's name
    endpoint: Annotated[
        str, typer.Option(help="Of a store that is not Amazon's; else $AWS_ENDPOINT_URL.")
    ] = "",
) -> None:
    """Make a campaign folder from the copy that storage.object_store keeps.

    Every byte is compared with its digest. What an interrupted call has fetched is not fetched
    again. Keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment.

    chess-snn campaign restore s3://my-bucket/first --dir campaigns/first
    """
    store = open_store(StorageSettings(object_store=url, endpoint=endpoint))
    with work_bar(f"restoring {url}", "folders") as on_progress:
        folder = restore_campaign(store, dir, on_progress)
    print_message(
        f"{folder.path}: {len(read_receipts(folder))} iterations are restored. Go on with it: "
        f"chess-snn campaign resume {folder.path}"
    )
