"""The receipts of a campaign one by one, for those who look after every iteration.

A campaign of 50,000 shards has some 30 MB of receipts. Whoever runs it asks for all their metrics
after each iteration, and for the receipts themselves hardly ever; so metrics are kept once they
were read, receipts are not, and the next time only what is new is read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import overload

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.numbered_files import Mark, mark_of
from chess_snn.campaign.store.receipts import Receipt, num_finished_iterations, read_receipt

_metrics: dict[Path, tuple[Mark, dict[str, float]]] = {}
"""By file, the metrics of receipts that were read, each with what told that file from another."""


class ReceiptHistory(Sequence[Receipt]):
    """The receipts of all iterations finished when it was made, each read when it is asked for."""

    def __init__(self, folder: CampaignFolder) -> None:
        """Of the campaign in ``folder``; nothing is read."""
        self._folder = folder
        self._length = num_finished_iterations(folder)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Receipt: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Receipt]: ...

    def __getitem__(self, index: int | slice) -> Receipt | Sequence[Receipt]:
        """Read one, or some.

        Raises:
            CorruptDataError: it is damaged.
        """
        numbers = range(self._length)[index]
        if isinstance(numbers, range):
            return [read_receipt(self._folder, number) for number in numbers]
        return read_receipt(self._folder, numbers)

    def metrics(self) -> list[dict[str, float]]:
        """:meth:`Receipt.metrics` of all of them; not to be changed.

        Raises:
            CorruptDataError: one is damaged.
        """
        return list(self._metrics_one_by_one())

    def _metrics_one_by_one(self) -> Iterator[dict[str, float]]:
        for number in range(self._length):
            path = self._folder.receipt(number)
            mark, known = mark_of(path), _metrics.get(path)
            if mark is None or known is None or known[0] != mark:
                metrics = self[number].metrics()
                if mark is not None:
                    _metrics[path] = mark, metrics
                yield metrics
            else:
                yield known[1]

