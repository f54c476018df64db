"""prefect.yaml is what the flows take, and what the form on Prefect's page shows."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

import jsonschema  # noqa: E402
import yaml  # noqa: E402
from prefect.flows import load_flow_from_entrypoint  # noqa: E402
from prefect.utilities.callables import parameter_schema  # noqa: E402

from chess_snn.campaign import preset_names  # noqa: E402
from flows.deploying import POOL  # noqa: E402

ROOT = Path(__file__).parents[2]
NAMES = ("campaign", "tournament", "import")


@pytest.fixture(scope="module")
def entries():
    found = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    return {load_flow_from_entrypoint(entry["entrypoint"]).name: entry for entry in found}


@pytest.fixture(scope="module")
def schemas(entries):
    return {
        name: dict(parameter_schema(load_flow_from_entrypoint(entry["entrypoint"])))
        for name, entry in entries.items()
    }


def test_there_are_a_campaign_a_tournament_and_an_import(entries):
    assert set(entries) == set(NAMES)
    for entry in entries.values():
        assert entry["name"] == "local"
        assert entry["work_pool"] == {"name": POOL}
        assert "chess-snn" in entry["tags"]


@pytest.mark.parametrize("name", NAMES)
def test_defaults_of_the_file_are_valid_parameters(entries, schemas, name):
    # What has no default is asked for in the form.
    schema = {key: value for key, value in schemas[name].items() if key != "required"}
    assert set(entries[name]["parameters"]) <= set(schema["properties"])
    jsonschema.validate(entries[name]["parameters"], schema)


@pytest.mark.parametrize("name", NAMES)
def test_every_field_of_the_form_has_its_sentence_and_its_line_in_the_description(
    entries, schemas, name
):
    for parameter, field in schemas[name]["properties"].items():
        assert field.get("description"), parameter
        assert f"`{parameter}`" in entries[name]["description"]


def test_a_preset_is_chosen_from_a_list(schemas):
    assert schemas["campaign"]["properties"]["preset"]["enum"] == list(preset_names())


def test_each_setting_in_the_form_has_a_default(schemas):
    """With None as default the form sends it, and the check of the form refuses it."""
    assert all(field["default"] is not None
               for field in schemas["campaign"]["properties"].values())


@pytest.mark.parametrize(("name", "parameters"), [
    ("campaign", {"preset": "huge"}),
    ("campaign", {"iterations": 2.5}),
    ("campaign", {"simulations": 100_001}),
    ("campaign", {"gpus": "0,1"}),
    ("campaign", {"workers": 2000}),
    ("campaign", {"name": "../elsewhere"}),
    ("campaign", {"settings": "campaign.iterations=1"}),
    ("tournament", {"directory": "/c", "openings": 0}),
    ("import", {"file": "/a.pgn"}),
])
def test_the_form_refuses_what_cannot_work(schemas, name, parameters):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(parameters, schemas[name])


def test_the_installed_file_is_the_one_of_the_repository():
    link = ROOT / "flows" / "prefect.yaml"
    assert link.is_symlink()
    assert link.resolve() == ROOT / "prefect.yaml"
