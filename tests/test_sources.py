"""The digest of source files."""

import platform
import re

import torch

from chess_snn import __version__
from chess_snn.sources import provenance, sources_digest


def test_sources_that_differ_in_a_byte_or_a_name_are_other_software(tmp_path):
    package = tmp_path / "package"
    (package / "games").mkdir(parents=True)
    source = package / "games" / "rules.py"
    source.write_text("DRAW = 0.5\n")
    first = sources_digest(package=package)
    (package / "notes.txt").write_text("no program")
    (tmp_path / "unrelated.py").write_text("")
    assert sources_digest(package=package) == first
    source.write_text("DRAW = 0.6\n")
    assert sources_digest(package=package) != first
    source.write_text("DRAW = 0.5\n")
    source.rename(source.with_name("law.py"))
    assert sources_digest(package=package) != first


def test_a_linked_folder_counts_as_one_that_was_copied(tmp_path):
    copied, linked = tmp_path / "installed" / "package", tmp_path / "checkout" / "package"
    for folder in (copied, linked.parent):
        (folder / "flows").mkdir(parents=True)
        (folder / "flows" / "iteration.py").write_text("STAGES = 5\n")
    linked.mkdir()
    (linked / "flows").symlink_to("../flows")
    assert sources_digest(package=linked) == sources_digest(package=copied)


def test_files_may_be_left_out_by_what_they_hold(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "kernels.py").write_text("# compiled\n")
    other = tmp_path / "package" / "other.py"
    other.write_text("x = 1\n")

    def key() -> str:
        return sources_digest(lambda text: b"compiled" in text, tmp_path / "package")

    first = key()
    other.write_text("x = 2\n")
    assert key() == first
    (tmp_path / "package" / "kernels.py").write_text("# compiled anew\n")
    assert key() != first


def test_a_process_knows_its_program_and_machine():
    facts = provenance()
    assert facts["torch"] == torch.__version__
    assert facts["python"] == platform.python_version()
    assert facts["version"] == __version__
    assert len(facts["sources"]) == 16
    assert facts["machine"].startswith(f"{platform.node()}: ")
    assert re.fullmatch(r"[0-9a-f]{40}\+?", facts.get("commit", "0" * 40))
