"""The public interface: its names and signatures, its examples, and what importing it loads."""

import ast
import doctest
import inspect
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import chess_snn

SIGNATURES = Path(__file__).with_name("signatures.txt")
"""All public names; to accept a change: PYTHONPATH=. python tests/api/test_public_names.py"""


def signature_of(member: object) -> str:
    """Parameters without their types, which mypy checks."""
    found = inspect.signature(member)
    bare = [each.replace(annotation=inspect.Parameter.empty)
            for each in found.parameters.values() if each.name != "self"]
    return str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def members_of(kind: type) -> list[str]:
    lines = []
    for name, member in sorted(inspect.getmembers_static(kind)):
        if name.startswith("_") or name in {"keys", "values", "items", "get"}:
            continue
        if isinstance(member, classmethod | staticmethod):
            continue  # makes the object, for the library itself
        is_method = inspect.isfunction(member)
        lines.append(f"    {name}{signature_of(member) if is_method else ''}")
    return lines


def public_interface() -> str:
    lines = []
    for name in chess_snn.__all__:
        value = getattr(chess_snn, name)
        if inspect.isclass(value):
            lines += [name, *members_of(value)]
        else:
            lines.append(f"{name}{signature_of(value)}")
    return "".join(f"{line}\n" for line in lines)


def test_names_and_signatures_are_those_that_users_rely_on():
    assert public_interface() == SIGNATURES.read_text()
    assert 10 <= len(chess_snn.__all__) <= 15


def test_types_see_the_names_that_are_loaded_when_they_are_used():
    tree = ast.parse(Path(chess_snn.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    stubs = [name.name for line in block.body for name in line.names]
    assert sorted(stubs) == sorted(chess_snn.__all__)
    assert set(chess_snn.__all__) <= set(dir(chess_snn))


def test_importing_loads_no_large_library_and_wrong_names_are_refused():
    program = (
        "import sys, chess_snn\n"
        "print(*{'torch', 'numba', 'pandas', 'numpy', 'zarr'} & set(sys.modules))\n"
        "try: chess_snn.laod\n"
        "except AttributeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=True)
    assert done.stdout == "\nmodule 'chess_snn' has no attribute 'laod'\n"


EXAMPLES = {
    test.name: test
    for value in (chess_snn, *(getattr(chess_snn, name) for name in chess_snn.__all__))
    for test in doctest.DocTestFinder().find(value, getattr(value, "__name__", None), module=False,
                                             globs={})
    if test.examples and (value is not chess_snn or test.name == "chess_snn")
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_gives_what_it_shows(name):
    lines = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(EXAMPLES[name], out=lines.append)
    assert not lines, "".join(lines)


def test_public_names_have_docstrings_and_the_main_ones_examples():
    shown = {name.partition(".")[0] for name in EXAMPLES}
    assert {"chess_snn", "load", "Net", "player", "play_match", "make_env"} <= shown
    for name in chess_snn.__all__:
        value = getattr(chess_snn, name)
        assert value.__doc__, name
        for part, member in vars(value).items() if inspect.isclass(value) else ():
            if not part.startswith("_") and isinstance(member, property | FunctionType):
                assert member.__doc__, f"{name}.{part}"


if __name__ == "__main__":
    SIGNATURES.write_text(public_interface())
