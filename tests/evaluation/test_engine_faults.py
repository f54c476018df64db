"""Whatever an engine does, a match ends, and says apart what was played, forfeited and void."""

import asyncio
import gc
import io
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import chess.pgn
import numpy as np
import psutil
import pytest
from fake_engines import num_started, running, write_engine

from chess_snn.errors import EngineError
from chess_snn.evaluation.engines.pool import EngineSettings
from chess_snn.evaluation.engines.process import EngineProcess
from chess_snn.evaluation.match_files import match_pgn
from chess_snn.evaluation.match_result import MatchResult
from chess_snn.evaluation.matches import play_match
from chess_snn.evaluation.named_players import make_player
from chess_snn.evaluation.openings import random_openings
from chess_snn.evaluation.players import RandomPlayer
from chess_snn.evaluation.ratings.crosstable import match_games
from chess_snn.evaluation.scores import pair_counts
from chess_snn.games import get_game

pytestmark = pytest.mark.fault(21)

PATIENT = EngineSettings(processes=2, answer_s=60.0, start_s=60.0, restarts=1)
HASTY = EngineSettings(processes=2, answer_s=1.5, start_s=60.0, restarts=1)
MAX_PLIES = 8


@pytest.fixture
def against_random(chess_game, tmp_path):
    """A match of a fake engine against a random player: two openings, white to move."""

    def play(fault, settings=PATIENT, *, swapped=False, everywhere=False):
        program = write_engine(tmp_path, fault, everywhere=everywhere)
        players = [make_player(chess_game, f"uci:{program}@5", settings), RandomPlayer()]
        if swapped:
            players.reverse()
        openings = random_openings(chess_game, 2, 4, seed=0)
        return play_match(chess_game, *players, openings, seed=0, max_plies=MAX_PLIES)

    return play


def pgn_of(result):
    """The games of a match as python-chess reads them."""
    texts = match_pgn(
        get_game("chess"), result, event="faults", date="2026-01-01",
    )
    games = [chess.pgn.read_game(io.StringIO(text)) for _, text in texts]
    assert not any(game.errors for game in games)
    return games


def only_program(result):
    [facts] = result.programs.values()
    return facts


@pytest.mark.parametrize("fault", ["sound", "small", "slow", "talks on"])
def test_an_engine_that_answers_plays_to_the_end(against_random, fault):
    result = against_random(fault)
    assert (result.voided, result.forfeits_a, result.forfeits_b) == (0, 0, 0)
    assert result.plies.tolist() == [MAX_PLIES] * 4
    assert only_program(result).identity == "Fake  1.0"
    assert only_program(result).failures == 0


def test_an_engine_that_dies_now_and_then_is_started_anew(against_random, tmp_path):
    result = against_random("dies now and then")
    facts = only_program(result)
    assert result.voided == 0
    assert result.plies.tolist() == [MAX_PLIES] * 4
    # 16 positions, two answered by each process.
    assert 5 <= facts.failures <= 7
    assert "code 3" in facts.last_failure
    assert num_started(tmp_path) >= 1 + facts.failures


@pytest.mark.parametrize(
    ("fault", "reason", "settings"),
    [
        ("dies", "code 3", PATIENT), ("flood", "65536", PATIENT), ("silent", "", HASTY),
        pytest.param("crashes", "SIGSEGV", PATIENT, marks=pytest.mark.slow),
        pytest.param("garbage", "", HASTY, marks=pytest.mark.slow),
    ],
)
def test_an_engine_without_an_answer_voids_the_game(
    against_random, fault, reason, settings, caplog
):
    result = against_random(fault, settings)
    # As white it plays on; as black it fails at its second move, half-move 4 of the match.
    assert result.voided == 2
    assert np.isnan(result.scores_a).tolist() == [False, True, False, True]
    assert result.plies.tolist() == [MAX_PLIES, 3, MAX_PLIES, 3]
    # On a busy machine a sound answer may be late once, too.
    assert only_program(result).failures >= 2 * 2
    assert reason in only_program(result).last_failure
    assert result.terminations_by_name == {"ply_cap": 2, "void": 2}
    assert not caplog.records, "what an engine says is not logged"


def test_voided_games_enter_no_score(against_random):
    result = against_random("dies")
    assert (result.num_games, result.num_scored, result.num_pairs) == (4, 2, 0)
    assert result.interval() == (0.0, 1.0), "no opening has both of its games"
    assert (result.wins, result.draws, result.losses, result.truncated) == (0, 0, 0, 2)
    assert result.score == 0.5
    assert pair_counts(result).sum() == 0
    games = match_games(result)
    assert len(games) == 2
    assert all(game.black == "random" for game in games)
    read = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert read["voided"] == 2
    assert read["per_game"]["score_a"] == [0.5, None, 0.5, None]
    again = MatchResult.from_json(get_game("chess").spec, read)
    np.testing.assert_array_equal(again.scores_a, result.scores_a)
    assert again.programs == result.programs
    cut, void, *_ = pgn_of(again)
    assert (cut.headers["EndedBy"], cut.headers["Termination"]) == ("ply_cap", "adjudication")
    assert (void.headers["Result"], void.headers["Termination"]) == ("*", "abandoned")
    assert (void.headers["EndedBy"], void.end().ply() - void.ply()) == ("void", 3)
    assert void.headers["BlackProgram"] == only_program(result).identity
    joined = MatchResult.joined([again, again]).programs[result.player_a]
    assert joined.failures == 2 * only_program(result).failures


@pytest.mark.parametrize(
    "answer", ["a1a1", "0000", "O-O", " ", "\u2603"]
)
def test_no_legal_move_forfeits_the_game(against_random, answer):
    result = against_random(answer)
    assert (result.voided, result.forfeits_a, result.forfeits_b, result.truncated) == (0, 2, 0, 2)
    assert result.scores_a.tolist() == [0.5, 0.0, 0.5, 0.0]
    assert result.losses == 2
    assert result.plies.tolist() == [MAX_PLIES, 3, MAX_PLIES, 3]
    assert result.terminations_by_name == {"ply_cap": 2, "forfeit": 2}
    assert only_program(result).failures == 0
    assert repr(answer.strip()) in only_program(result).last_illegal
    assert pair_counts(result).tolist() == [0, 2, 0, 0, 0]
    forfeited = pgn_of(result)[1].headers
    assert (forfeited["Result"], forfeited["Termination"]) == ("1-0", "rules infraction")
    assert forfeited["EndedBy"] == "forfeit"


def test_a_forfeit_is_a_win_of_the_opponent(against_random):
    result = against_random("0000", swapped=True)
    assert (result.forfeits_a, result.forfeits_b, result.wins) == (0, 2, 2)
    assert sorted(result.scores_a.tolist()) == [0.5, 0.5, 1.0, 1.0]


def test_a_match_without_a_result_is_an_error(against_random):
    with pytest.raises(EngineError, match=r"Fake  1\.0"):
        against_random("dies", everywhere=True)


def test_an_engine_that_always_fails_is_given_up(chess_game, tmp_path):
    settings = EngineSettings(processes=1, answer_s=0.2, start_s=60.0, restarts=0, give_up_after=2)
    player = make_player(
        chess_game, f"uci:{write_engine(tmp_path, 'silent', everywhere=True)}@5", settings
    )
    openings = random_openings(chess_game, 200, 4, seed=0)
    start_s = time.monotonic()
    with pytest.raises(EngineError, match="400"):
        play_match(chess_game, player, RandomPlayer(), openings, seed=0)
    assert num_started(tmp_path) == 2
    assert time.monotonic() - start_s < 200 * 0.2, "every position was waited for"


def test_an_engine_that_does_not_greet_is_an_error(against_random, tmp_path):
    settings = EngineSettings(processes=1, start_s=0.5)
    with pytest.raises(EngineError, match=r"mute\.py"):
        against_random("mute", settings)
    gc.collect()
    assert not running(tmp_path)


@pytest.mark.parametrize(
    "program", ["#!/bin/sh\nexec cat\n", "#!/bin/sh\n", "\0 no program"]
)
def test_a_program_that_is_no_engine_is_an_error(chess_game, tmp_path, program):
    path = tmp_path / "program"
    path.write_text(program)
    path.chmod(0o755)
    player = make_player(chess_game, f"uci:{path}@5", EngineSettings(start_s=2.0))
    with pytest.raises(EngineError, match="program"):
        play_match(
            chess_game, player, RandomPlayer(), random_openings(chess_game, 1, 0, 0), seed=0
        )


def test_processes_end_with_their_player(chess_game, tmp_path):
    player = make_player(chess_game, f"uci:{write_engine(tmp_path, 'sound')}@5", PATIENT)
    openings = random_openings(chess_game, 4, 4, seed=0)
    play_match(chess_game, player, RandomPlayer(), openings, seed=0, max_plies=2)
    assert 1 <= len(running(tmp_path)) <= 2  # a second one starts only if the first is busy
    del player
    gc.collect()
    assert not running(tmp_path)


@pytest.mark.slow
def test_an_engine_that_hangs_behind_a_script_is_left_running_bug(chess_game, tmp_path):
    script, fifo = tmp_path / "script", tmp_path / "fifo"
    os.mkfifo(fifo)
    its_end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    # Stands for an engine that hangs: it does not notice that its input has ended.
    script.write_text(f"#!/bin/sh\n(echo up; exec sleep 600) > '{fifo}' &\nwait\n")
    script.chmod(0o755)
    player = make_player(chess_game, f"uci:{script}@5", EngineSettings(processes=1, start_s=5.0))
    with pytest.raises(EngineError, match="script"):
        _ = player.program
    assert os.read(its_end, 99) == b"up\n"
    assert select.select([its_end], [], [], 30.0)[0], "it still runs"
    assert os.read(its_end, 99) == b""
    os.close(its_end)


PLAYER = """
import asyncio, os, signal, sys
from pathlib import Path
from chess_snn.evaluation.engines.process import EngineProcess
async def start():
    engines = [await EngineProcess.start(Path(sys.argv[1])) for _ in range(3)]
    await engines.pop().release()
    if sys.argv[2] == "forks" and os.fork() == 0:
        signal.pause()
    print(*(engine.transport.get_pid() for engine in engines), flush=True)
    signal.pause()
asyncio.run(start())
"""


@pytest.mark.parametrize("how", ["plain", "forks"])
def test_engines_end_with_a_process_that_is_killed_bug(tmp_path, how):
    """One that hung, or computed without end, was left for good."""
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\nsleep 600 &\nwhile :; do :; done\n")
    script.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", PLAYER, script, how], stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as player:
        sessions = [int(word) for word in player.stdout.readline().split()]
        try:
            time.sleep(1.0)
            assert [len(alive(session)) for session in sessions] == [3, 3], "watcher, script, sleep"
            player.kill()
            wait_for_the_end_of(*sessions)
        finally:
            for process in itertools.chain(*map(alive, [*sessions, player.pid])):
                process.kill()


def test_an_engine_ends_with_the_process_that_watches_it(tmp_path):
    async def start_and_kill() -> int:
        engine = await EngineProcess.start(write_engine(tmp_path, "mute"))
        watcher = psutil.Process(engine.transport.get_pid())
        while len(alive(watcher.pid)) < 2:
            await asyncio.sleep(0.05)
        watcher.kill()
        await engine.release()
        return watcher.pid

    wait_for_the_end_of(asyncio.run(start_and_kill()))


def wait_for_the_end_of(*sessions: int) -> None:
    deadline = time.monotonic() + 10
    while any(map(alive, sessions)):
        assert time.monotonic() < deadline, "an engine was left"
        time.sleep(0.05)


def alive(session: int) -> list[psutil.Process]:
    """The processes of a session; the dead may wait for a parent that takes notice."""
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_an_interrupt_is_not_kept_waiting(chess_game, tmp_path):
    """Ctrl-C while an engine thinks ends the match at once, and its processes."""
    player = make_player(
        chess_game, f"uci:{write_engine(tmp_path, 'silent', everywhere=True)}@5", PATIENT
    )
    assert player.program.identity == "Fake  1.0"
    main = threading.main_thread().ident
    stop = threading.Timer(1.0, signal.pthread_kill, [main, signal.SIGINT])
    stop.start()
    start_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        play_match(
            chess_game, player, RandomPlayer(), random_openings(chess_game, 3, 4, 0), seed=0
        )
    assert time.monotonic() - start_s < 30
    assert not running(tmp_path)
