"""Checkpoints: weights, optimiser, place in the schedule and random state, as one committed folder.

::

    gen-000012/
      weights.safetensors     what self-play, evaluation and the registry load
      optimizer.safetensors   moments of AdamW
      trainer.json            counters, settings, the sampling stream
      MANIFEST.json           sizes and SHA-256 of the above

Nothing in it is a pickle. A trainer loaded from it goes on exactly as the one that was saved.
"""

from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from chess_snn.data import Manifest, read_json, staged_folder, verify_folder, write_json
from chess_snn.errors import CorruptDataError
from chess_snn.games.base import Game
from chess_snn.nets import load_network, network_digest, save_network
from chess_snn.training.settings import TrainingSettings
from chess_snn.training.trainer import Trainer
from chess_snn.types import Json

WEIGHTS = "weights.safetensors"
_OPTIMIZER = "optimizer.safetensors"
_TRAINER = "trainer.json"
_FORMERLY_KEPT = "torch_rng_state"
"""Of torch's random numbers, of which training draws none."""
_STEP = "step"
"""AdamW's name for the one entry of a parameter's state that has not the parameter's shape."""
_MISFITS = (KeyError, TypeError, ValueError, IndexError, SafetensorError)
"""What bytes raise that are intact and yet not the state of this trainer and network."""


def save_checkpoint(folder: Path, trainer: Trainer, meta: Json) -> Manifest:
    """Commit ``trainer`` to ``folder``; where it is committed already, return what is there."""
    with staged_folder(folder) as stage:
        save_network(stage.path / WEIGHTS, trainer.network)
        save_file(_optimizer_tensors(trainer), stage.path / _OPTIMIZER)
        write_json(stage.path / _TRAINER, _trainer_state(trainer))
        return stage.commit(
            kind="checkpoint", meta={"weights_digest": network_digest(trainer.network)} | meta
        )


def load_trainer(folder: Path, game: Game, device: torch.device | str = "cpu") -> Trainer:
    """The trainer saved in ``folder``, after its digests were checked.

    Raises:
        CorruptDataError: a file is missing or damaged.
    """
    verify_folder(folder)
    network = load_network(folder / WEIGHTS)
    state = read_json(folder / _TRAINER)
    try:
        settings = TrainingSettings(**state["settings"])
        trainer = Trainer(game, network, settings, state["seed"], device)
        trainer.steps_done = state["steps_done"]
        trainer.step_in_iteration = state["step_in_iteration"]
        trainer.rng.bit_generator.state = state["sampling_rng"]
        _restore_optimizer(trainer, load_file(folder / _OPTIMIZER))
    except _MISFITS as error:
        raise CorruptDataError(
            f"checkpoint {folder} does not hold a trainer this version can read: {error!r}; "
            "resume from an earlier generation"
        ) from error
    return trainer


def _trainer_state(trainer: Trainer) -> Json:
    return {
        "seed": trainer.seed,
        "steps_done": trainer.steps_done,
        "step_in_iteration": trainer.step_in_iteration,
        "settings": asdict(trainer.settings),
        "sampling_rng": trainer.rng.bit_generator.state,
    }


def _parameters(trainer: Trainer) -> list[Tensor]:
    """The parameters in the optimiser's own order, which names them in the file."""
    return [p for group in trainer.optimizer.param_groups for p in group["params"]]


def _optimizer_tensors(trainer: Trainer) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for index, parameter in enumerate(_parameters(trainer)):
        for name, value in trainer.optimizer.state.get(parameter, {}).items():
            # safetensors stores dense memory only; the format of the parameter comes back on load.
            tensors[f"{index}.{name}"] = value.detach().cpu().contiguous()
    return tensors


def _restore_optimizer(trainer: Trainer, tensors: dict[str, Tensor]) -> None:
    tensors.pop(_FORMERLY_KEPT, None)
    parameters = _parameters(trainer)
    for key, stored in tensors.items():
        index, name = key.split(".", 1)
        parameter = parameters[int(index)]
        # Moments take the parameter's memory format. The fused optimiser wants its count of steps
        # on the parameter's device too.
        like = stored if name == _STEP else parameter
        if stored.shape != like.shape:
            raise ValueError(f"{key} has shape {list(stored.shape)}, not {list(like.shape)}")
        value = torch.empty_like(like, device=parameter.device).copy_(stored)
        trainer.optimizer.state[parameter][name] = value
