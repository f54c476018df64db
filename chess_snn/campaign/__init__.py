"""A campaign: its folder, settings, lock, receipts and stages. Knows nothing of who runs it."""

from chess_snn.campaign.configuration.loading import load_config, preset_names
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.lock import campaign_lock
from chess_snn.campaign.store.receipts import Receipt, read_receipt, read_receipts, write_receipt

__all__ = [
    "CampaignConfig",
    "CampaignFolder",
    "Receipt",
    "campaign_lock",
    "load_config",
    "preset_names",
    "read_receipt",
    "read_receipts",
    "write_receipt",
]
