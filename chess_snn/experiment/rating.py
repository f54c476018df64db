"""The games of a network on the ladder, in batches that are kept: an interrupted rating goes on."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chess_snn.api.matches import player_of
from chess_snn.campaign.models.model import Model
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.ladder.adaptive import run_ladder_test
from chess_snn.evaluation.ladder.ladder import Ladder
from chess_snn.evaluation.match_files import read_kept_match, write_match
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import book_openings
from chess_snn.evaluation.players import Player
from chess_snn.games import get_game
from chess_snn.known import BATCH_PAIRS
from chess_snn.rng import derive_seed
from chess_snn.types import Progress

ENGINE_S: Final = 60.0
"""No clock runs: an engine that is slow because the machine is busy should not be taken
for dead."""
_DIGEST_LENGTH: Final = 8
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9.@=~-]+")


@dataclass(frozen=True, slots=True)
class RatingGames:
    """The batches of one network, each a file."""

    folder: Path
    model: Model
    max_plies: int
    seed: int
    engines: EngineSettings

    def play(
        self, ladder: Ladder, rungs: Sequence[str], num_games: int, *,
        against: Sequence[str] = (), threads: int = 0, device: str = "cpu",
        on_progress: Progress,
    ) -> dict[str, list[MatchResult]]:
        """Every batch by opponent; those in :attr:`folder` are not played again.

        Args:
            ladder: whose players they are.
            rungs: players that can be played, the weakest first.
            num_games: of the network; of each pairing with ``against``.
            against: these players, in place of rungs near the network's strength.
            threads: of the network; 0 chooses automatically.
            device: of the network.
            on_progress: called with games over and games in all.

        Raises:
            UsageError: a batch was played under other conditions.
        """
        total, done = num_games * max(1, len(against)), 0
        with player_of(self.model, device=device, threads=threads or None) as rated:
            seat = rated.seat(2 * BATCH_PAIRS)

            def play_batch(opponent: str, number: int) -> MatchResult:
                nonlocal done
                result = self._play_or_read(seat, opponent, number)
                done += result.num_games
                on_progress(done, total)
                return result

            if not against:
                return run_ladder_test(ladder, rungs, num_games, play_batch).batches
            num_batches = num_games // (2 * BATCH_PAIRS)
            return {
                name: [play_batch(name, number) for number in range(num_batches)]
                for name in against
            }

    def _play_or_read(self, seat: Player, opponent: str, number: int) -> MatchResult:
        game, model = get_game("chess"), self.model
        # Conditions that must be equal in all batches that are counted together.
        conditions = {
            "seed": self.seed, "max_plies": self.max_plies, "weights": model.file_digest,
            "simulations": model.simulations,
        }
        digest = hashlib.sha256(model.name.encode()).hexdigest()[:_DIGEST_LENGTH]
        name = f"{_NOT_IN_NAMES.sub('-', model.name)[-40:]}-{digest}"
        path = self.folder / f"{name}--{_NOT_IN_NAMES.sub('-', opponent)}--{number:04d}.json"
        if (kept := read_kept_match(game, path, conditions)) is not None:
            return kept
        openings = range(number * BATCH_PAIRS, (number + 1) * BATCH_PAIRS)
        result = play_match(
            game, seat, make_player(game, opponent, self.engines),
            book_openings(game, openings.stop, self.seed)[openings.start :],
            seed=derive_seed(self.seed, "ladder-rate", opponent, number),
            max_plies=self.max_plies,
        )
        write_match(path, result, conditions)
        return result
