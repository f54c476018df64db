"""The notebooks of docs/notebooks/ run, and show stored answers."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient", reason="pip install 'chess-snn[dev]': NOT tested")

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_answer_is_stored_and_none_is_an_error(path):
    cells = code_cells(nbformat.read(path, 4))
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert "error" not in {output.output_type for output in outputs}
    assert all(output.get("name") != "stderr" for output in outputs)
    assert path.stat().st_size < 200_000


@pytest.mark.slow
@pytest.mark.orchestration
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, played_campaign, tmp_path):
    (tmp_path / "campaigns").mkdir()
    (tmp_path / "campaigns" / "smoke-001").symlink_to(played_campaign.path)
    notebook = nbformat.read(path, 4)
    before = [len(cell.outputs) for cell in code_cells(notebook)]
    nbclient.NotebookClient(
        notebook, timeout=280, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    assert [len(cell.outputs) for cell in code_cells(notebook)] == before
