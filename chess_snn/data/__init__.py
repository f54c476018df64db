"""Played games on the disk and in memory: records, shards, the commit protocol, the replay window.

::

    write_shard(folder, records, meta={"game": "chess"})     # once, whole, checked
    window = ReplayWindow.load(game, shard_folders, capacity=250_000)
    samples = window.sample(256, rng)
"""

from typing import TYPE_CHECKING

from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.data.commit import (
        copy_folder,
        link_folder,
        staged_folder,
        utc_now,
    )
    from chess_snn.data.files import (
        create_text,
        read_json,
        sweep_temporaries,
        write_bytes,
        write_json,
        write_parts,
        write_text,
    )
    from chess_snn.data.formats import StoredFormat, is_own_digest, json_digest, with_digest
    from chess_snn.data.manifest import (
        MANIFEST_NAME,
        Manifest,
        StoredFile,
        is_committed,
        read_folder,
        read_manifest,
        verify_files,
        verify_folder,
    )
    from chess_snn.data.records import START_KINDS, GameRecords, concatenate
    from chess_snn.data.samples import (
        Samples,
        check_td_lambda,
        play_actions,
        restart_states,
        rewards_of,
        state_rows,
    )
    from chess_snn.data.shard import check_shard, read_shard, read_shard_of, write_shard
    from chess_snn.data.window import GAMES_BEFORE, ReplayWindow
else:
    __getattr__ = exports(__name__)
