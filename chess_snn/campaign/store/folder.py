"""The campaign folder: where each thing lies. The folder is the truth; all else is a view on it.

::

    <campaign>/
      campaign.toml                    the configuration, frozen at the start
      campaign.lock                    who is writing
      campaign.log                     what happened, a line each
      report.html                      all of it as one page, written at the end
      plans/iter-000012.json           progress and number of shards of the iteration
      games/iter-000012/shard-0003     one immutable shard: a Zip file of Zarr arrays
      games/from-iter-000012/shard-0003    one that another campaign played
      checkpoints/gen-000012/          one generation
      supervised/step-000001200/       pretraining of generation 0, if there is any
      matches/gen-000012/random.json   one match of that generation
      matches/gen-000012/champion-000008.json   its games against the champion then
      matches/final/greedy-64.json     one match at the end of the campaign
      promotions/by-hand-0000.json     a champion chosen by hand
      extensions/extension-0000.json   how long it lasts now
      comparisons/…/                   a match that an earlier version kept
      receipts/iter-000012.json        what the iteration committed
      quarantine/                      corrupt artifacts, with the reason
      removals/removal-0000.json       what `chess-snn gc` removed
      services/                        databases and logs of the embedded servers
"""

import errno
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from chess_snn.campaign.configuration.loading import (
    build_config,
    config_values,
    format_toml,
    parse_toml,
    read_text,
    read_toml,
)
from chess_snn.campaign.configuration.settings import CampaignConfig
from chess_snn.campaign.store.origin import Origin, read_origin
from chess_snn.data import (
    StoredFormat,
    create_text,
    is_own_digest,
    sweep_temporaries,
    utc_now,
    with_digest,
    write_text,
)
from chess_snn.data.files import make_folder, remove, sync_folder, temporary_sibling, writing
from chess_snn.data.plain_files import check_plain
from chess_snn.data.window import INHERITED
from chess_snn.errors import CampaignError, ConfigError
from chess_snn.types import Json

CONFIG_FILE = "campaign.toml"
REPORT = "report.html"
"""A view of the rest, which any later report replaces: no artifact."""
FORMAT = StoredFormat("campaign configuration", version=3)
PART_MARK = ".part-"
"""Part of the names of a match's parts."""

RECEIPT = "receipts/iter-{iteration:06d}.json"
PLAN = "plans/iter-{iteration:06d}.json"
SHARD = "games/iter-{iteration:06d}/shard-{shard:04d}"
INHERITED_SHARD = f"games/{INHERITED}{{origin}}/shard-{{shard:04d}}"
CHECKPOINT = "checkpoints/gen-{generation:06d}"
STEP_CHECKPOINT = "supervised/step-{step:09d}"
MATCH = "matches/{event}/{name}.json"
MATCH_PART = f"matches/{{event}}/{{name}}{PART_MARK}{{part:04d}}.json"
HAND_PROMOTION = "promotions/by-hand-{number:04d}.json"
EXTENSION = "extensions/extension-{number:04d}.json"
COMPARISON = "comparisons/{name}/{file}.json"
NOTE = "quarantine/{name}.json"
QUARANTINED = "quarantine/{name}"
REMOVAL = "removals/removal-{number:04d}.json"
"""Paths of a campaign's artifacts; :mod:`chess_snn.campaign.artifacts.table` has the rest."""

_SERVICES = "services"
_LEVELS = 2
"""Levels that must be plain. Deeper ones belong to committed folders, which are only read."""
_LEVELS_OF_SERVICES = 16
"""Practically all levels: other programs write there, in place."""
_IDENTITY = "identity"
_ORIGIN = "origin"
_ID = re.compile(r"[0-9a-f]{32}")
_NOT_IN_NAMES = re.compile(r"[^\w.@~=-]")
"""Characters that an opponent's name may have and a file's may not."""


def file_name(name: str) -> str:
    """``name`` of a match as the name of its file."""
    return _NOT_IN_NAMES.sub("-", name)


def _is_taken(path: Path) -> CampaignError:
    return CampaignError(
        f"{path} holds another campaign; go on with it by `chess-snn campaign resume {path}`, or "
        "choose another --dir"
    )


def campaign_around(path: Path) -> Path | None:
    """The folder of the campaign that ``path`` lies in, links followed; None where it is in none.

    A configuration without an identity does not make its folder a campaign; an unreadable one does.
    """
    try:
        parent = path.parent.resolve()
        return next(filter(_holds_campaign, (parent, *parent.parents)), None)
    except (OSError, RuntimeError):  # links in a ring, or a closed folder: nothing is written there
        return None


def _holds_campaign(folder: Path) -> bool:
    if not (folder / CONFIG_FILE).is_file():
        return False
    try:
        return _IDENTITY in read_toml(folder / CONFIG_FILE)
    except ConfigError:
        return True


@dataclass(frozen=True, slots=True)
class CampaignFolder:
    """A campaign on disk."""

    path: Path
    """Absolute."""
    campaign_id: str
    """Never changes, wherever the folder is moved."""
    config: CampaignConfig
    origin: Origin | None = None
    """None if it began from nothing."""

    @classmethod
    def create(
        cls, path: Path, config: CampaignConfig, origin: Origin | None = None,
        fill: Callable[["CampaignFolder"], None] | None = None,
    ) -> "CampaignFolder":
        """Make a new campaign in ``path``, which must be missing or empty.

        ``fill`` is called with the campaign before it has its name, and puts in what it begins
        with. The campaign appears with all of it, or not at all.

        Raises:
            CampaignError: it holds something already, or cannot be written.
        """
        path = path.absolute()
        try:
            if (path / CONFIG_FILE).exists():
                raise _is_taken(path)
            make_folder(path)
            sweep_temporaries(path)  # of a start that was killed at once
            if any(path.iterdir()):
                raise CampaignError(f"{path} is not empty; choose a new folder with --dir")
        except OSError as error:
            raise CampaignError(
                f"cannot use {path} as a campaign folder: {error.strerror}; choose another --dir"
            ) from error
        folder = cls(path, uuid.uuid4().hex, config, origin)
        text = folder._format(
            with_digest(
                {"schema": FORMAT.version, "id": folder.campaign_id, "created": utc_now()}
            )
        )
        if fill is None:
            if not create_text(path / CONFIG_FILE, text):
                raise _is_taken(path)
        else:
            folder._appear_with(fill, text)
        return folder

    @classmethod
    def open(cls, path: Path) -> "CampaignFolder":
        """The campaign in ``path``, which may be a link itself.

        Raises:
            CampaignError: there is none.
            UsageError: something in the folder is neither a plain file nor a folder.
            UnknownVersionError: its configuration is of a version that is not read.
            ConfigError: its configuration is damaged.
        """
        path = path.absolute()
        if not (path / CONFIG_FILE).is_file():
            raise CampaignError(
                f"{path} holds no campaign ({CONFIG_FILE} is missing); start one with "
                "`chess-snn campaign start`"
            )
        check_plain(path, _LEVELS)
        if (path / _SERVICES).is_dir():
            check_plain(path / _SERVICES, _LEVELS_OF_SERVICES)
        return _parsed(path, read_text(path / CONFIG_FILE))

    def with_config(self, config: CampaignConfig) -> "CampaignFolder":
        """The same campaign, from now on under ``config``; the caller holds its lock.

        Only settings that change its pace may differ:
        :func:`chess_snn.campaign.configuration.loading.change_pace`.
        """
        identity = read_toml(self.path / CONFIG_FILE)[_IDENTITY]
        changed = replace(self, config=config)
        write_text(self.path / CONFIG_FILE, changed._format(identity))
        return changed

    def _format(self, identity: Json) -> str:
        origin = {} if self.origin is None else {_ORIGIN: self.origin.to_toml()}
        return format_toml({_IDENTITY: identity} | origin | config_values(self.config))

    def _appear_with(self, fill: Callable[["CampaignFolder"], None], text: str) -> None:
        """Fill a folder beside this one, and give it this one's name."""
        with writing(self.path):
            sweep_temporaries(self.path.parent)  # of a start that was killed
            stage = temporary_sibling(self.path)
            stage.mkdir()
            try:
                fill(replace(self, path=stage))
                write_text(stage / CONFIG_FILE, text)
                try:
                    stage.rename(self.path)  # which is empty
                except OSError as error:
                    if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                        raise
                    raise _is_taken(self.path) from error
                sync_folder(self.path.parent)
            finally:
                if stage.exists():
                    remove(stage)

    @property
    def name(self) -> str:
        """Name for people: that of the folder."""
        return self.path.name

    def name_of(self, path: Path) -> str:
        """The name in notes of ``path``, which lies in the folder: relative, with ``/``."""
        return path.relative_to(self.path).as_posix()

    @property
    def lock_file(self) -> Path:
        """Names the one writer."""
        return self.path / "campaign.lock"

    @property
    def log_file(self) -> Path:
        """The log of events for people; may be deleted between runs."""
        return self.path / "campaign.log"

    @property
    def services(self) -> Path:
        """Data of the embedded servers; may be deleted between runs."""
        return self.path / _SERVICES

    def shard(self, iteration: int, shard: int) -> Path:
        """One shard: a Zip file."""
        return self.path / SHARD.format(iteration=iteration, shard=shard)

    def checkpoint(self, generation: int) -> Path:
        """Folder of one generation."""
        return self.path / CHECKPOINT.format(generation=generation)

    def generations(self) -> list[int]:
        """Numbers of the generations whose checkpoint is there, whole or not, rising."""
        found = self.checkpoint(0).parent.glob("gen-*")
        names = (path.name.removeprefix("gen-") for path in found)
        return sorted(int(name) for name in names if name.isdecimal())

    @property
    def supervised(self) -> Path:
        """Checkpoints of supervised training; gone once generation 0 is there."""
        return (self.path / STEP_CHECKPOINT).parent

    def match(self, event: str, name: str) -> Path:
        """Result of one match; the event is a generation's (``gen-000012``) or ``final``."""
        return self.path / MATCH.format(event=event, name=file_name(name))

    def match_part(self, event: str, name: str, part: int) -> Path:
        """Result of a part of a match, until the match is whole."""
        return self.path / MATCH_PART.format(event=event, name=file_name(name), part=part)

    @property
    def quarantine(self) -> Path:
        """Corrupt artifacts and the reasons; see :mod:`chess_snn.campaign.store.notes`."""
        return (self.path / QUARANTINED).parent

    def removal(self, number: int) -> Path:
        """The note of what was removed on purpose at one time, from 0."""
        return self.path / REMOVAL.format(number=number)

    def hand_promotion(self, number: int) -> Path:
        """A change of the champion by hand, from 0."""
        return self.path / HAND_PROMOTION.format(number=number)

    def extension(self, number: int) -> Path:
        """A later decision on how long the campaign lasts, from 0."""
        return self.path / EXTENSION.format(number=number)

    def plan(self, iteration: int) -> Path:
        """Progress and number of shards of one iteration."""
        return self.path / PLAN.format(iteration=iteration)

    def receipt(self, iteration: int) -> Path:
        """The file that says what one iteration committed."""
        return self.path / RECEIPT.format(iteration=iteration)


@lru_cache(maxsize=64)
def _parsed(path: Path, text: str) -> CampaignFolder:
    """The campaign in ``path``, whose configuration is ``text``; stages open it again and again."""
    file = path / CONFIG_FILE
    values = parse_toml(text, file)
    identity = values.pop(_IDENTITY, {})
    origin = values.pop(_ORIGIN, None)
    known = str(identity.get("id", "")) if isinstance(identity, dict) else ""
    if not _ID.fullmatch(known):
        raise CampaignError(f"{file} has no identity.id; it was edited or truncated")
    FORMAT.check(identity.get("schema"), file)
    if not is_own_digest(identity):
        raise CampaignError(
            f"the [identity] of {file} was changed since the campaign began; restore it from a copy"
        )
    return CampaignFolder(
        path, known, build_config(values), None if origin is None else read_origin(origin)
    )
