"""prefect.yaml is what the flow takes, and what the form on Prefect's page shows."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.orchestration
pytest.importorskip("prefect")
pytest.importorskip("mlflow")

import jsonschema  # noqa: E402
import yaml  # noqa: E402
from prefect.flows import load_flow_from_entrypoint  # noqa: E402
from prefect.utilities.callables import parameter_schema  # noqa: E402

from chess_snn.flows.supervisor import POOL  # noqa: E402
from chess_snn.known import PRESETS  # noqa: E402

ROOT = Path(__file__).parents[2]


ENTRIES = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
SCHEMAS = [
    dict(parameter_schema(load_flow_from_entrypoint(each["entrypoint"]))) for each in ENTRIES
]
EACH = pytest.mark.parametrize(("entry", "schema"), [*zip(ENTRIES, SCHEMAS, strict=True)])


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_deployment_has_its_pool(entry):
    assert entry["name"] == "local"
    assert entry["work_pool"] == {"name": POOL}
    assert "chess-snn" in entry["tags"]


@EACH
def test_defaults_of_the_file_are_valid_parameters(entry, schema):
    assert set(entry["parameters"]) <= set(schema["properties"])
    jsonschema.validate(entry["parameters"], schema)


@EACH
def test_every_field_of_the_form_has_its_sentence_and_its_line_in_the_description(entry, schema):
    for parameter, field in schema["properties"].items():
        assert field.get("description"), parameter
        assert f"`{parameter}`" in entry["description"]


def test_a_preset_is_chosen_from_a_list():
    assert SCHEMAS[0]["properties"]["preset"]["enum"] == list(PRESETS)


def test_each_setting_in_the_form_has_a_default():
    """With None as default the form sends it, and the check of the form refuses it."""
    assert all(field["default"] is not None
               for field in SCHEMAS[0]["properties"].values())


@pytest.mark.parametrize("parameters", [
    {"preset": "huge"},
    {"iterations": 2.5},
    {"simulations": 100_001},
    {"gpus": "0,1"},
    {"workers": 2000},
    {"name": "../elsewhere"},
    {"settings": "campaign.iterations=1"},
])
def test_the_form_refuses_what_cannot_work(parameters):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(parameters, SCHEMAS[0])


def test_the_installed_file_is_the_one_of_the_repository():
    link = ROOT / "flows" / "prefect.yaml"
    assert link.is_symlink()
    assert link.resolve() == ROOT / "prefect.yaml"
