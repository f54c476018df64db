"""Generations as receipts name them: whether a checkpoint is the one that belongs at its place."""

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.notes import last_events, read_notes
from chess_snn.campaign.store.receipts import read_receipt
from chess_snn.data import Manifest, read_manifest
from chess_snn.errors import CorruptDataError, DamagedFolderError

_DIGITS = 12
"""Length of a digest in messages."""


def read_generation(folder: CampaignFolder, generation: int) -> Manifest:
    """The manifest of the checkpoint of ``generation``, with the weights that its receipt names.

    A generation that was rebuilt may have other weights. As long as its iteration is not finished,
    it has no receipt.

    Raises:
        DamagedFolderError: as :func:`numbered_manifest`.
        CorruptDataError: it has other weights, or the receipt is damaged.
        UnknownVersionError: the manifest or the receipt is of a version that is not read.
    """
    manifest = numbered_manifest(folder, generation)
    if generation == 0 or not folder.receipt(generation - 1).exists():
        return manifest
    found = str(manifest.meta.get("weights_digest"))
    named = read_receipt(folder, generation - 1).training.weights_digest
    if found != named and not _was_rebuilt(folder, generation):
        raise CorruptDataError(
            f"{folder.checkpoint(generation)} has weights {found[:_DIGITS]}…, and its receipt "
            f"names {named[:_DIGITS]}…; restore the one that is wrong from a copy"
        )
    return manifest


def numbered_manifest(folder: CampaignFolder, generation: int) -> Manifest:
    """The manifest of the checkpoint of ``generation``, which says that it is that.

    Raises:
        DamagedFolderError: it is missing or damaged, or the checkpoint is another generation.
        UnknownVersionError: it is of a version that is not read.
    """
    checkpoint = folder.checkpoint(generation)
    manifest = read_manifest(checkpoint)
    if (found := manifest.meta.get("generation")) != generation:
        raise DamagedFolderError(
            f"{checkpoint} holds generation {found}; restore it from a copy, or delete it so that "
            "it is made again", checkpoint,
        )
    return manifest


def _was_rebuilt(folder: CampaignFolder, generation: int) -> bool:
    name = folder.name_of(folder.checkpoint(generation))
    return name in last_events(read_notes(folder), "rebuilt")
