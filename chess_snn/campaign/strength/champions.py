"""Champions of a campaign, now and before, and changes by hand.

Receipts name the champion after each iteration. A user may choose another one between two
iterations; that choice is kept in a file of its own, and the next candidate plays against it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipt_parts import PromotionFacts
from chess_snn.campaign.store.receipts import Receipt, read_receipt, read_receipts
from chess_snn.campaign.store.typed_json import RESTORE, RecordFormat, numbered_files
from chess_snn.campaign.strength.match_schedule import is_evaluated
from chess_snn.data import StoredFormat, utc_now, write_text
from chess_snn.errors import CampaignError, CorruptDataError, UsageError
from chess_snn.settings import check_range

HandAction = Literal["promote", "rollback"]


@dataclass(frozen=True, slots=True)
class HandPromotion:
    """A champion that a user chose."""

    generation: int
    """The champion from then on."""
    num_finished: int
    """Iterations that had their receipt when it was chosen."""
    action: HandAction
    who: str
    why: str
    created: str
    """ISO 8601, UTC."""

    def __post_init__(self) -> None:
        check_range("generation", self.generation, ge=1)
        check_range("num_finished", self.num_finished, ge=self.generation)


HAND_PROMOTIONS: Final = RecordFormat(
    HandPromotion, StoredFormat("choice of a champion", version=2, has_digest=True)
)


def champion_of(folder: CampaignFolder, receipts: Sequence[Receipt]) -> int | None:
    """Generation of the champion now, given all receipts; None before the first.

    Raises:
        CorruptDataError: a choice by hand is damaged.
    """
    chosen = _chosen_after(read_hand_promotions(folder), len(receipts))
    if chosen is None and receipts:
        return receipts[-1].champion
    return chosen


def champion_to_beat(folder: CampaignFolder, iteration: int) -> int | None:
    """The champion that the candidate of ``iteration`` has to replace.

    None while no champion was either evaluated or chosen by hand. All earlier iterations have their
    receipt.
    """
    by_hand = read_hand_promotions(folder)
    champion = _chosen_after(by_hand, iteration)
    if champion is None and iteration > 0:
        champion = read_receipt(folder, iteration - 1).champion
    if champion is None:
        return None
    was_chosen = any(choice.generation == champion for choice in by_hand)
    return champion if was_chosen or is_evaluated(folder, champion) else None


def choose_champion(
    folder: CampaignFolder, iteration: int, score: float | None, promotion: PromotionFacts | None
) -> int:
    """Generation of the champion once ``iteration`` is finished; all earlier ones are.

    The candidate is generation ``iteration + 1``. ``score`` is its mean over the opponents, in
    [0, 1]; None if it was not evaluated.
    """
    candidate, champion = iteration + 1, champion_to_beat(folder, iteration)
    if champion is None:
        return candidate
    settings = folder.config.promotion
    if settings.rule == "sprt":
        is_better = promotion is not None and promotion.verdict == "accept"
    else:
        wanted = read_receipt(folder, champion - 1).score
        is_better = score is not None and (wanted is None or score >= wanted + settings.margin)
    return candidate if is_better else champion


def past_champions(folder: CampaignFolder) -> list[int]:
    """Generations that were champion up to now, the present one last; a rollback takes one off."""
    by_hand, reigns = read_hand_promotions(folder), list[int]()
    receipts = read_receipts(folder)
    for num_finished in range(len(receipts) + 1):
        if num_finished:
            _succeed(reigns, receipts[num_finished - 1].champion)
        for choice in by_hand:
            if choice.num_finished != num_finished:
                continue
            if choice.action == "rollback" and reigns:
                reigns.pop()
            _succeed(reigns, choice.generation)
    return reigns


def promote_by_hand(
    folder: CampaignFolder, generation: int, who: str, why: str
) -> HandPromotion:
    """Make ``generation`` the champion; the caller holds the campaign's lock.

    Raises:
        CampaignError: it is the champion already, or its iteration is not finished.
        UsageError: ``who`` or ``why`` cannot be kept.
    """
    receipts = read_receipts(folder)
    num_finished = len(receipts)
    if not 1 <= generation <= num_finished:
        raise CampaignError(
            f"generation {generation} of {folder.path} cannot be champion: "
            + (f"those of finished iterations are 1 to {num_finished}" if num_finished
               else "no iteration is finished")
        )
    if generation == champion_of(folder, receipts):
        raise CampaignError(f"generation {generation} of {folder.path} is the champion already")
    return _choose(folder, generation, num_finished, "promote", who, why)


def roll_back(folder: CampaignFolder, who: str, why: str) -> HandPromotion:
    """Make the champion before the present one champion again; the caller holds the lock.

    Raises:
        CampaignError: there was none.
        UsageError: ``who`` or ``why`` cannot be kept.
    """
    reigns = past_champions(folder)
    if len(reigns) < 2:
        raise CampaignError(
            f"{folder.path} has had no champion before "
            + (f"generation {reigns[0]}" if reigns else "its first iteration is finished")
            + "; choose one: chess-snn models promote CAMPAIGN@GENERATION"
        )
    return _choose(folder, reigns[-2], len(read_receipts(folder)), "rollback", who, why)


def read_hand_promotions(folder: CampaignFolder) -> list[HandPromotion]:
    """All choices by hand, in order; they have no gaps.

    Raises:
        UnknownVersionError: one is of a version that is not read.
        CorruptDataError: one is damaged, or missing though a later one is there.
    """
    # Listed first, so that a choice made meanwhile does not count as a later one.
    listed = list(folder.hand_promotion(0).parent.glob("by-hand-????.json"))
    files = numbered_files(folder.hand_promotion)
    if len(files) < len(listed):
        raise CorruptDataError(f"{folder.hand_promotion(len(files))} is missing; {RESTORE}")
    return [HAND_PROMOTIONS.read(file) for file in files]


def _choose(
    folder: CampaignFolder, generation: int, num_finished: int, action: HandAction, who: str,
    why: str,
) -> HandPromotion:
    _check_text("--who", who)
    _check_text("--why", why)
    choice = HandPromotion(generation, num_finished, action, who, why, utc_now())
    number = len(read_hand_promotions(folder))
    write_text(folder.hand_promotion(number), HAND_PROMOTIONS.text(choice))
    return choice


def _check_text(option: str, text: str) -> None:
    """Refuse what a terminal in another encoding gave: no reader takes it back."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{option} must be text in UTF-8, got {text!r}; write it in other letters"
        ) from error


def _chosen_after(by_hand: Sequence[HandPromotion], num_finished: int) -> int | None:
    """The generation chosen since the last receipt; None without a choice."""
    chosen = [choice.generation for choice in by_hand if choice.num_finished == num_finished]
    return chosen[-1] if chosen else None


def _succeed(reigns: list[int], generation: int) -> None:
    if not reigns or reigns[-1] != generation:
        reigns.append(generation)
