"""How many worker processes a campaign has on this machine, and what each of them gets."""

from chess_snn.campaign.devices import find_devices, is_gpu
from chess_snn.campaign.settings import CampaignConfig
from chess_snn.cores import num_cores
from chess_snn.nets.calibration import calibration_for


def num_workers(config: CampaignConfig) -> int:
    """Workers to start, as set, or no more than there are shards: one a GPU, or one a core.

    Not every core has one where the network was measured to run as fast on fewer.
    """
    if config.execution.workers:
        return config.execution.workers
    devices = find_devices(config.execution.device)
    if is_gpu(devices[0]):
        num_sites = len(devices)
    else:
        num_sites = calibration_for(config.net.network(), config.net.precision).num_threads
    return max(1, min(num_sites, config.self_play.num_shards))


def threads_each(num_workers: int) -> int:
    """Cores of a worker while all work side by side, >= 1."""
    return max(1, num_cores() // num_workers)
