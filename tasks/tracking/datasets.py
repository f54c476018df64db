"""Data that a run learnt from, as MLflow's dataset inputs."""

import json

from mlflow.entities import Dataset, DatasetInput, InputTag
from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT

from tasks.tracking.facts import DatasetFacts


def log_input(client: MlflowClient, run_id: str, facts: DatasetFacts) -> None:
    """Make the data an input of the run; a second time changes nothing."""
    dataset = Dataset(
        name=facts.name, digest=facts.digest, source_type="local",
        source=json.dumps({"uri": facts.place}), profile=json.dumps(dict(facts.profile)),
    )
    tag = InputTag(MLFLOW_DATASET_CONTEXT, facts.context)
    client.log_inputs(run_id, datasets=[DatasetInput(dataset, tags=[tag])])
