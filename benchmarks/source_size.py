"""Print how large and how scattered the source tree is: `make size`.

Everything is counted from the files; nothing is imported. `--details` prints what the last rows
consist of. The records of docs/decisions stay as they are, and are not counted.
"""

import argparse
import ast
import re
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
PRODUCT: Final = ("chess_snn", "flows", "tasks")

TARGETS: Final = {
    "product lines": "about 36,000", "product files": "at most 240", "test lines": "about 32,000",
    "prose lines in docs and README": "about 2,200", "types that represent a network": "at most 5",
    "private terms in names": "0", "private terms in messages and docs": "0",
}

EVERYWHERE: Final = {
    "workers": "crew", "remote job": "errand", "rebuild": "mend(s|ed|er|ing)?",
    "quarantine": r"sets? aside|setting aside|whereabouts", "dataset": "given games?",
    "byte": "octets?", "hint": "ways? out", "baseline": "(ordinary )?twins?",
    "worker cache, backup": "replicas?", "rendezvous": "(rank )?meetings?",
    "adaptive ladder test": "climb(s|ed|ing|er)?", "gating match": "gates?|challengers?",
    "file proxy, handoff": "relay(s|ed)?", "truncated": "capped|ply caps?|cut (games?|value)",
    "progress interval": "stretch(es)?",
}
"""Private words by the standard one, in names and texts; parts of a name count as words."""

IN_NAMES: Final = {
    "registry client": "visits?", "worker slot": "(worker|rank) places?|places",
    "inputs": "needs?", "outputs": "leaves", "artifacts": "things?",
    "schedule, chunk": "course|portions?", "missing-artifact notes": "absences?",
    "worker group": "party", "backup": "mirror|copies", "integrity": "keeping|makers",
    "LogFn": "Say|Tell|News|Waiting",
}
"""The same where only a name is private: in sentences these words are ordinary."""

STANDARD_IN: Final = {
    "visits?": "search/|uci/|cli/", "leaves": "search/|uci/|web/|games/",
    "mirror|copies": "games/|training/|data/",
}
"""Where these names have their usual meaning."""

STORED: Final = re.compile(
    r"capped|gate|ply_cap|CutValueWhite|set aside|(evaluation\.)?climb(\.json|_\w+)?"
    r"|self_play\.cut_value_limit"
)
"""Keys, settings, files and tags that campaigns, PGN files and scripts of users have: they keep
their names. A text or a path in a document that is such a name is counted apart."""

PHRASES: Final = (
    "nobody", "somebody", "whoever", "(?<!there )is no(?! longer| more)", "is told", "comes to",
)
"""To avoid. "There is no such file" is plain; "it is no file" is not."""

NETWORK_TYPE: Final = re.compile(
    r"\w*(Network|Model|Version|VersionFacts|NetworkPlayer|Entrant|PlayerFacts|TrainingFacts)"
)


def python_files(*folders: str) -> list[Path]:
    """All modules below the folders."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def prose_files() -> list[Path]:
    """README and documents."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def num_lines(path: Path) -> int:
    """Lines of a file, empty ones too."""
    return len(path.read_text(encoding="utf-8").splitlines())


def module_of(path: Path) -> str:
    """The dotted name under which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def one_importer_files(trees: dict[Path, ast.Module]) -> list[Path]:
    """Files that one other file imports; a name from a package counts where it is defined."""
    modules = {module_of(path): path for path in trees}
    exported = {
        (module_of(path), alias.asname or alias.name): f"{node.module}.{alias.name}"
        for path, tree in trees.items() if path.name == "__init__.py"
        for node in tree.body if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def target(module: str, name: str) -> str | None:
        while (module, name) in exported:
            module, _, name = exported[module, name].rpartition(".")
        return next((found for found in (f"{module}.{name}", module) if found in modules), None)

    importers: dict[str, set[Path]] = {}
    for path, tree in trees.items():
        if path.name == "__init__.py":
            continue
        for node in ast.walk(tree):
            found: list[str | None] = []
            if isinstance(node, ast.ImportFrom):
                found = [target(str(node.module), alias.name) for alias in node.names]
            elif isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            for module in found:
                if module in modules and modules[module] != path:
                    importers.setdefault(module, set()).add(path)
    return [modules[module] for module, paths in importers.items() if len(paths) == 1]


def words_of(name: str) -> str:
    """The words of an identifier, apart: ``CrewWatch`` and ``crew_watch`` are ``crew watch``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name).lower()


def names(path: Path, tree: ast.Module) -> Iterator[str]:
    """What a file defines, and the file's own name."""
    yield path.parent.name if path.name == "__init__.py" else path.stem
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def sentences(path: Path, tree: ast.Module) -> Iterator[str]:
    """Comments, docstrings, messages and other texts of a file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    with path.open("rb") as source:
        yield from (token.string for token in tokenize.tokenize(source.readline)
                    if token.type == tokenize.COMMENT)


def all_texts(trees: dict[Path, ast.Module]) -> tuple[str, int]:
    """Every sentence of the sources and the documents, in small letters, names as words.

    And how many names of :data:`STORED` were left out.
    """
    texts = [text for path, tree in trees.items() for text in sentences(path, tree)]
    for path in prose_files():
        texts += re.split(r"([\w.]+(?=`))", path.read_text(encoding="utf-8"))
    kept = [text for text in texts if not STORED.fullmatch(text)]
    return words_of(" ".join(" ".join(kept).split())), len(texts) - len(kept)


def count_in_text(words: Iterable[str], text: str) -> Counter[str]:
    """How often each of the patterns occurs in ``text``."""
    return Counter({word: len(re.findall(rf"\b({word})\b", text)) for word in words})


def count_in_names(trees: dict[Path, ast.Module]) -> Counter[str]:
    """How many names have each private word, a name counted once in a file."""
    counts: Counter[str] = Counter()
    for path, tree in trees.items():
        defined = [f"{name} {words_of(name)}" for name in set(names(path, tree))]
        for word in (*EVERYWHERE.values(), *IN_NAMES.values()):
            if not re.search(STANDARD_IN.get(word, "$^"), path.as_posix()):
                counts[word] += sum(bool(re.search(rf"\b({word})\b", name)) for name in defined)
    return counts


def network_types(trees: dict[Path, ast.Module]) -> list[str]:
    """Classes that stand for a network, or for one version of it."""
    return sorted(
        f"{module_of(path)}.{node.name}" for path, tree in trees.items() for node in tree.body
        if isinstance(node, ast.ClassDef) and NETWORK_TYPE.fullmatch(node.name)
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--details", action="store_true", help="words and types, one by one")
    trees = {path: ast.parse(path.read_bytes()) for path in python_files(*PRODUCT)}
    (text, num_stored), types = all_texts(trees), network_types(trees)
    in_names, in_text = count_in_names(trees), count_in_text(EVERYWHERE.values(), text)
    phrases = count_in_text(PHRASES, text)
    if parser.parse_args().details:
        for word in [*in_names, *phrases]:
            print(f"{in_names[word]:5} names {in_text[word] + phrases[word]:5} in text  {word}")
        print(*types, sep="\n")
    lengths = [num_lines(path) for path in trees]
    rows = {
        "product lines": sum(lengths),
        "product files": len(lengths),
        "median file, lines": int(statistics.median(lengths)),
        "files with one importer": len(one_importer_files(trees)),
        "test lines": sum(map(num_lines, python_files("tests"))),
        "prose lines in docs and README": sum(map(num_lines, prose_files())),
        "types that represent a network": len(types),
        "private terms in names": in_names.total(),
        "private terms in messages and docs": in_text.total(),
        "private terms that users have stored": num_stored,
        "phrases to avoid": phrases.total(),
    }
    for name, count in rows.items():
        print(f"{name:36} {count:8,}   {TARGETS.get(name, '')}")


if __name__ == "__main__":
    main()
