"""List everything a user can do, one line per item, and compare the list with a stored one.

    python tests/features.py              # what disappeared, with its reason, and what appeared
    python tests/features.py --list       # the list itself

The exit code is 1 if something disappeared for no reason that ``REASONS`` gives.

Nothing else is listed by hand. Commands, settings and flows are introspected; columns, metrics and
JSON keys are read from what the commands write about the stored campaigns of tests/data/stored.
"""

import argparse
import ast
import contextlib
import csv
import importlib
import inspect
import io
import json
import os
import re
import sqlite3
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
import yaml
from pydantic import TypeAdapter
from stored_files import ARCHIVES, unpack
from typer.testing import CliRunner

from chess_snn.campaign import CampaignConfig, load_config, preset_names
from chess_snn.cli.main import app

TESTS = Path(__file__).parent
ROOT = TESTS.parent
BASELINE = TESTS / "data" / "features.txt"
SOURCES = ("chess_snn", "flows", "tasks")
SIGNS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
"""Bounds, by their names in a JSON schema."""

CHANGED = "is still there, with other bounds, choices or default"
REASONS = {
    r"cluster certs": "all hosts share one key, because Dask checks no host names",
    r"extra (kubernetes|slurm)|(setting|parameter) cluster\.(account|certificates_secret|directives"
    r"|host|image|job_\w+|jobs|namespace|queue|setup|volume_claim)\b":
        "never run on either; both reach workers by cluster.kind=address and files in deployments/",
    r"--local-addr|--max-restarts":
        "ranks find their interface; the command continues when it is run again",
    r"execution\.training_shares": "micro-batches are divided evenly among ranks",
    r"ladder check --seed": "the check repeats the seed that each recorded match was played with",
    r"environment (CHESS_SNN_(AGENT_PID|WORKER_PLACE)|TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
    r"|TORCH_ELASTIC_SHUTDOWN_TIMEOUT)$": "internal: set by one process of the package for another",
    r"module python -m (flows\.guard|chess_snn\.campaign\.configuration\.reference)$":
        "internal: moved or replaced",
    r"\bclimb": "renamed: ladder_test, and evaluation/ladder_elo",
    r"\bgate(_|$| )": "renamed: gating_match or promotion",
    r"cut_rate|cut_value_limit|capped": "renamed: truncated",
    r"given_(games|digest)": "renamed: dataset, dataset_digest",
    r"absent\.(made_again|set_aside)": "renamed: rebuilt, quarantined",
    r"uci option name Model|command chess-snn uci": "has the shipped network as its default",
}
"""Why what a pattern matches disappeared. An item that only changed needs none."""


def commands() -> Iterator[str]:
    """Every command with its arguments and options."""
    root = typer.main.get_group(app)
    yield from command_lines(root, typer.Context(root, info_name="chess-snn"), "chess-snn")


def command_lines(command: Any, context: typer.Context, path: str) -> Iterator[str]:
    yield f"command {path}"
    for parameter in command.params:
        yield f"command {path} {parameter_line(parameter)}"
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from command_lines(command.get_command(context, name), context, f"{path} {name}")


def parameter_line(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    names = [*parameter.opts, *parameter.secondary_opts]
    parts = [" ".join(names) if is_option else parameter.display_name_raw.upper()]
    parts += [inspect.formatannotation(parameter.type_descriptor.annotation)]
    parts += [f">={parameter.min}"] if parameter.min is not None else []
    parts += [f"<={parameter.max}"] if parameter.max is not None else []
    has_default = not any(parameter.default is empty for empty in (None, False, ""))
    parts += [f"default={parameter.default}"] if has_default else []
    parts += ["repeated"] if parameter.multiple or parameter.nargs != 1 else []
    parts += ["required"] if parameter.required else []
    return " ".join(parts)


def settings() -> Iterator[str]:
    """Every setting with type, default and bounds."""
    schema = TypeAdapter(CampaignConfig).json_schema()
    defaults = flat(TypeAdapter(CampaignConfig).dump_python(CampaignConfig(), mode="json"))
    for group in schema["properties"]:
        properties = resolved(schema["properties"][group], schema)["properties"]
        for name, field in properties.items():
            key = f"{group}.{name}"
            facts = resolved(field, schema)
            yield f"setting {key} {schema_text(facts)} default={json.dumps(defaults[key])}"


def resolved(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """``node`` with what its reference names."""
    name = node.get("$ref", "").rpartition("/")[2]
    return node | (resolved(schema["$defs"][name], schema) if name else {})


def schema_text(facts: dict[str, Any]) -> str:
    """A value's type, choices and bounds."""
    kind = facts.get("type") or "/".join(part.get("type", "?") for part in facts.get("anyOf", []))
    texts = [kind, "of " + schema_text(facts["items"]) if facts.get("items") else ""]
    texts += [f"one of {', '.join(map(str, facts['enum']))}" if "enum" in facts else ""]
    texts += [f"{sign}{facts[bound]:.17g}" for bound, sign in SIGNS.items() if bound in facts]
    return " ".join(filter(None, texts))


def presets() -> Iterator[str]:
    """What each preset changes."""
    defaults = flat(asdict(CampaignConfig()))
    for preset in preset_names():
        yield f"preset {preset}"
        for key, value in flat(asdict(load_config(preset))).items():
            if value != defaults[key]:
                yield f"preset {preset} {key} = {json.dumps(value)}"


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested dictionaries as one, with dotted names."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        is_group = isinstance(value, dict)
        found |= flat(value, f"{prefix}{key}.") if is_group else {prefix + key: value}
    return found


def deployments() -> Iterator[str]:
    """Deployments, the fields of their forms, and what the forms start with."""
    body = yaml.safe_load((ROOT / "prefect.yaml").read_text())
    for deployment in body["deployments"]:
        module, _, function = deployment["entrypoint"].rpartition(".")
        flow = getattr(importlib.import_module(module), function)
        name = f"deployment {flow.name}/{deployment['name']}"
        yield f"{name} tags {', '.join(deployment['tags'])}"
        properties = flow.parameters.properties
        required = set(flow.parameters.required)
        for field, facts in properties.items():
            default = deployment["parameters"].get(field, facts.get("default"))
            end = " required" if field in required else f" default={json.dumps(default)}"
            yield f"{name} field {field} {schema_text(facts)}{end}"


def python_names() -> Iterator[str]:
    """What the documents import from the library, and the modules that they run."""
    for path in documents():
        text = path.read_text()
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.ImportFrom) and str(node.module).startswith(SOURCES):
                    yield from (f"import {node.module}.{name.name}" for name in node.names)
        for module in re.findall(r"python -m ([\w.]+)", text):
            if module.startswith(SOURCES):
                yield f"module python -m {module}"


def documents() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]


def package() -> Iterator[str]:
    """Console scripts and extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    yield from (f"script {name}" for name in project["scripts"])
    yield from (f"extra {name}" for name in project["optional-dependencies"])


def make_targets() -> Iterator[str]:
    text = (ROOT / "Makefile").read_text()
    yield from (f"make {name}" for name in re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE))
    yield from (f"make variable {name}={value}"
                for name, value in re.findall(r"^(\w+) +\?= *(.*)$", text, re.MULTILINE))


def environment_variables() -> Iterator[str]:
    """Variables that the program names."""
    pattern = re.compile(
        r"(CHESS_SNN|AWS|PREFECT|MLFLOW|CUDA|NVIDIA|NUMBA|XDG|OMP|GLOO|NCCL|TORCH|DASK|SLURM|"
        r"KUBERNETES|MASTER|RANK|LOCAL|WORLD)[A-Z0-9_]*[A-Z0-9]|[A-Z0-9_]+_PROXY"
    )
    for package in SOURCES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and "_" in text and pattern.fullmatch(text):
                    yield f"environment {text}"


def stored_campaigns() -> Iterator[str]:
    """What the commands write about campaigns that are stored, and in which games they do."""
    games: dict[str, list[str]] = {}
    for archive in ARCHIVES:
        with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
            os.environ["CHESS_SNN_HOME"] = str(Path(scratch, "home"))
            unpack(archive, Path(scratch))
            for line in set(written_lines()):
                games.setdefault(line, []).append(archive.name.partition("-")[0])
    yield from (f"{line} ({', '.join(sorted(found))})" for line, found in games.items())


def written_lines() -> Iterator[str]:
    """Of the campaign in the current folder."""
    columns = next(csv.reader(io.StringIO(printed("results", "campaign", "--csv"))))
    yield from (f"results column {column}" for column in columns)
    for command in (
        "results campaign", "campaign status campaign", "verify campaign --workers 1",
        "gc campaign", "models list campaign", "models show campaign", "ratings campaign",
        "games stats campaign", "doctor",
    ):
        body = json.loads(printed(*command.split(), "--json"))
        name = command.removesuffix(" campaign").partition(" campaign -")[0]
        yield from (f"json {name} {key}" for key in json_keys(body))
    printed("campaign", "resume", "campaign")  # records a finished campaign in MLflow
    yield from (f"mlflow {line}" for line in mlflow_lines(Path("home", "services")))


def uci_options() -> Iterator[str]:
    said = printed("uci", stdin="uci\nquit\n").splitlines()
    yield from (f"uci {line}" for line in said if line.startswith("option "))


def printed(*arguments: str, stdin: str = "") -> str:
    """What a command prints on standard output, run in this process."""
    done = CliRunner().invoke(app, arguments, input=stdin, prog_name="chess-snn")
    if done.exit_code not in {0, 1} or not done.stdout:
        raise RuntimeError(f"chess-snn {' '.join(arguments)}: {done.output}") from done.exception
    return done.stdout


def json_keys(body: Any, prefix: str = "") -> set[str]:
    """The keys of nested objects; ``[]`` stands for the members of a list."""
    if isinstance(body, dict):
        return {
            found for key, value in body.items()
            for found in {prefix + key, *json_keys(value, f"{prefix}{key}.")}
        }
    if isinstance(body, list):
        return {found for member in body for found in json_keys(member, f"{prefix}[].")}
    return set()


def mlflow_lines(services: Path) -> Iterator[str]:
    """Names in MLflow's store, and the signature of the registered model."""
    tables = {
        "metric": ("metrics", "key"), "parameter": ("params", "key"), "tag": ("tags", "key"),
        "version tag": ("model_version_tags", "key"),
        "alias": ("registered_model_aliases", "alias"), "model": ("registered_models", "name"),
        "experiment": ("experiments", "name"), "input": ("input_tags", "value"),
    }
    with contextlib.closing(sqlite3.connect(services / "mlflow.db")) as store:
        for kind, (table, column) in tables.items():
            for (name,) in store.execute(f"SELECT DISTINCT {column} FROM {table}"):
                yield f"{kind} {name}"
    for path in services.rglob("*"):
        if path.name == "MLmodel":
            signature = yaml.safe_load(path.read_text())["signature"]
            for kind, text in signature.items():
                for field in json.loads(text) if text else ():
                    yield f"model {kind} {json.dumps(field, sort_keys=True)}"
        elif path.is_file() and "artifacts" in path.parts:
            yield f"artifact {path.name}"


PARTS = (
    commands, settings, presets, deployments, python_names, package, make_targets,
    environment_variables, uci_options, stored_campaigns,
)


def features() -> list[str]:
    """All of it, sorted, each line once."""
    return sorted({" ".join(line.split()) for part in PARTS for line in part()})


def main() -> None:
    parser = argparse.ArgumentParser(description=inspect.getdoc(sys.modules[__name__]))
    parser.add_argument("--list", action="store_true", help="print the list itself")
    found = features()
    if parser.parse_args().list:
        print("\n".join(found))
        return
    before = set(BASELINE.read_text().splitlines())
    appeared = sorted(set(found) - before)
    names = {name_of(line) for line in appeared}
    disappeared: dict[str, list[str]] = {}
    for line in sorted(before - set(found)):
        reason = CHANGED if name_of(line) in names else reason_of(line)
        disappeared.setdefault(reason, []).append(line)
    for reason, lines in disappeared.items():
        print("\n".join([f"{len(lines)} disappeared: {reason or 'NO REASON'}"]
                        + [f"- {line}" for line in lines]))
    print("\n".join(f"+ {line}" for line in appeared))
    print(f"{len(found)} features; {sum(map(len, disappeared.values()))} disappeared, "
          f"{len(appeared)} appeared")
    sys.exit(1 if "" in disappeared else 0)


def name_of(line: str) -> str:
    """An item without its type, bounds and default."""
    kinds = r"int|str|float|bool|list(?=\[)|pathlib|string|number|integer|boolean|array|type"
    return re.split(rf" (?:{kinds})\b|=", line)[0].strip()


def reason_of(line: str) -> str:
    """Why an item disappeared; empty if no reason is known."""
    return next((reason for pattern, reason in REASONS.items() if re.search(pattern, line)), "")


if __name__ == "__main__":
    main()
