"""A campaign: its folder, settings, lock, receipts and stages. Knows nothing of who runs it."""

from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.campaign.configuration.loading import load_config
    from chess_snn.campaign.configuration.settings import CampaignConfig
    from chess_snn.campaign.store.folder import CampaignFolder
    from chess_snn.campaign.store.lock import campaign_lock
    from chess_snn.campaign.store.receipts import (
        Receipt,
        read_receipt,
        read_receipts,
        write_receipt,
    )
else:
    __getattr__ = exports(__name__)
