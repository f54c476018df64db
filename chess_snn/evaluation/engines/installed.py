"""Where engines are on this machine."""

import shutil
from pathlib import Path
from typing import Final

from chess_snn.errors import EngineError

GAMES_FOLDER: Final = "/usr/games"
"""Where Debian and its children put engines; often not on PATH."""


def find_engine(program: str) -> Path:
    """The executable file of an engine.

    Args:
        program: a path, if there is a slash in it; else a name that is looked for on PATH, then in
            ``GAMES_FOLDER``.

    Raises:
        EngineError: there is none; says what to do.
    """
    if "/" in program:
        try:
            return _executable(Path(program).expanduser())
        except (OSError, RuntimeError) as error:  # a path that no file can have; a home of nobody
            raise EngineError(
                f"there is no engine at {program!r} ({error}); give another path"
            ) from error
    found = shutil.which(program) or shutil.which(program, path=GAMES_FOLDER)
    if found is None:
        remedy = (
            "`make stockfish` installs it" if program == "stockfish"
            else "install it, or give the path of its file: uci:/path/to/engine@1000"
        )
        raise EngineError(
            f"engine {program!r} is not installed: it is neither on PATH nor in {GAMES_FOLDER}; "
            f"{remedy}"
        )
    return Path(found).absolute()


def _executable(path: Path) -> Path:
    if not path.is_file():
        raise EngineError(f"there is no engine at {path}; give the path of its executable file")
    if shutil.which(path) is None:
        raise EngineError(f"engine {path} may not be executed; `chmod +x` it, if it is a program")
    return path.absolute()
