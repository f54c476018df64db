"""Files numbered from 0, read as they come and no more often; and the receipts of a campaign.

A campaign of 50,000 shards has some 30 MB of receipts. Its metrics are needed after each iteration,
the receipts themselves hardly ever; so metrics are kept, receipts are not, and only new ones are
read.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar, overload

from chess_snn.campaign.store.folder import CampaignFolder
from chess_snn.campaign.store.receipts import Receipt, num_finished_iterations, read_receipt

Entry = TypeVar("Entry")

Mark = tuple[int, ...]
"""Tells a file from the one that took its place."""


class NumberedFiles(Generic[Entry]):
    """What the files hold, kept up to date by :meth:`refresh`."""

    def __init__(self, path_of: Callable[[int], Path], read: Callable[[int], Entry]) -> None:
        """Of the files ``path_of(0)``, ``path_of(1)``, … in one folder, each read by ``read``."""
        self.entries: list[Entry] = []
        self._path_of = path_of
        self._read = read
        self._marks: list[Mark | None] = []
        self._folder_mark: Mark | None = None

    def refresh(self) -> bool:
        """Whether anything has changed; where nothing has, two files were looked at.

        From a file that was replaced or removed, all that follow are read again.
        """
        folder_mark = mark_of(self._path_of(0).parent)
        has_forgotten = folder_mark != self._folder_mark and self._forget_changed()
        self._folder_mark = folder_mark
        has_read = self._read_new()
        return has_forgotten or has_read

    def _forget_changed(self) -> bool:
        for number, mark in enumerate(self._marks):
            if mark_of(self._path_of(number)) != mark:
                del self.entries[number:], self._marks[number:]
                return True
        return False

    def _read_new(self) -> bool:
        first = len(self.entries)
        while (mark := mark_of(self._path_of(len(self.entries)))) is not None:
            self.entries.append(self._read(len(self.entries)))
            self._marks.append(mark)
        return len(self.entries) > first


def mark_of(path: Path) -> Mark | None:
    """Differs when the file was replaced; None where it is missing."""
    try:
        facts = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_size


_metrics: dict[Path, tuple[Mark, dict[str, float]]] = {}
"""By file, the metrics of receipts that were read, with what identifies that state of the file."""


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

