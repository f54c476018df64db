"""A campaign: its folder, settings, lock, receipts and stages. Knows nothing of who runs it."""

from chess_snn.campaign.folder import CampaignFolder
from chess_snn.campaign.loading import load_config, preset_names
from chess_snn.campaign.lock import campaign_lock
from chess_snn.campaign.receipts import Receipt, read_receipt, read_receipts, write_receipt
from chess_snn.campaign.settings import CampaignConfig

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
