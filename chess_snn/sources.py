"""Identity of this program, to the byte, and what it runs on."""

import glob
import hashlib
import platform
import re
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from chess_snn import __version__
from chess_snn.cores import num_cores
from chess_snn.wording import counted

_PACKAGE: Final = Path(__file__).parent
_ROOT: Final = _PACKAGE.parent

_DIGEST_LENGTH: Final = 16


def sources_digest(
    counts: Callable[[bytes], bool] = lambda _: True, package: Path = _PACKAGE
) -> str:
    """Digest of names and contents of all Python files of ``package``; 16 digits.

    Args:
        counts: whether a file with this content counts; by default all do.
        package: the folder, and those to which it has links.
    """
    digest = hashlib.sha256()
    # Path.rglob does not follow links, by which a checkout has chess_snn.flows and chess_snn.tasks.
    for name in sorted(glob.iglob("**/*.py", root_dir=package, recursive=True)):  # noqa: PTH207
        content = (package / name).read_bytes()
        if counts(content):
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()[:_DIGEST_LENGTH]


@cache
def torch_build() -> dict[str, str]:
    """Texts in ``torch.version``, such as ``cuda`` if it is built for CUDA; torch is not loaded."""
    torch = find_spec("torch")
    assert torch is not None
    text = Path(str(torch.origin)).with_name("version.py").read_text(encoding="utf-8")
    return dict(re.findall(r"^(\w+)(?:: \S+)? = '(.*)'$", text, re.MULTILINE))


@cache
def provenance() -> dict[str, str]:
    """Identity of the program of this process, with what it runs, and where.

    Names: ``version`` of the package, ``commit`` of a Git checkout (with ``+`` where files were
    changed; left out elsewhere), ``sources`` (a digest), ``torch``, ``python``, ``machine``.
    """
    commit = _commit()
    return {
        "version": __version__,
        **({} if commit is None else {"commit": commit}),
        "sources": sources_digest(),
        "torch": torch_build()["__version__"],  # with the build, which package metadata may lack
        "python": platform.python_version(),
        "machine": f"{platform.node()}: {platform.system()}, {platform.machine()}, "
                   f"{counted(num_cores(), 'core')}",
    }


def _commit() -> str | None:
    if not (_ROOT / ".git").exists():
        return None
    try:
        commit = _git("rev-parse", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None  # there is no Git, or it does not trust the folder's owner


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=True,
        timeout=10,
    ).stdout.strip()
