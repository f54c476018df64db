"""Checkpoints: weights, optimiser, place in the schedule and random state, as one committed folder.

::

    gen-000012/
      weights.safetensors     what self-play, evaluation and the registry load
      optimizer.safetensors   moments of AdamW; where the weights are a running average, those
                              that are trained
      trainer.json            counters, settings, the sampling stream
      MANIFEST.json           sizes and SHA-256 of the above

Nothing in it is a pickle. A trainer loaded from it goes on exactly as the one that was saved.
"""

from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from chess_snn.data import (
    Manifest,
    read_json,
    staged_folder,
    verify_files,
    write_json,
)
from chess_snn.games.base import Game
from chess_snn.known import WEIGHTS
from chess_snn.nets import (
    NetConfig,
    Network,
    load_network,
    network_digest,
    save_network,
    write_tensors,
)
from chess_snn.nets.model.weights import read_tensors
from chess_snn.rng import derive_seed
from chess_snn.training.checkpoint_files import (
    CHECKPOINT_FORMAT,
    OPTIMIZER,
    TRAINER,
    check_kind_of,
    readable,
    verify_checkpoint,
)
from chess_snn.training.ranks import ALONE, Ranks
from chess_snn.training.settings import TrainingSettings
from chess_snn.training.trainer import Trainer
from chess_snn.types import Json

_TRAINED = "trained"
"""Names the trained weights and running statistics beside the numbers that name parameters."""
_STEP = "step"
"""AdamW's name for the one entry of a parameter's state that has not the parameter's shape."""


def save_checkpoint(folder: Path, trainer: Trainer, meta: Json) -> Manifest:
    """Commit ``trainer`` to ``folder``; where it is committed already, return what is there."""
    own = {
        "checkpoint_version": CHECKPOINT_FORMAT.version,
        "weights_digest": network_digest(trainer.playing_network),
    }
    with staged_folder(folder) as stage:
        save_network(stage.path / WEIGHTS, trainer.playing_network)
        write_tensors(stage.path / OPTIMIZER, _optimizer_tensors(trainer))
        write_json(stage.path / TRAINER, _trainer_state(trainer))
        return stage.commit(kind=CHECKPOINT_FORMAT.name, meta=own | meta)


def load_weights(folder: Path) -> Network:
    """The network of the checkpoint in ``folder``, after all digests were checked.

    Raises:
        DamagedFolderError: a file is missing or damaged.
        UnknownVersionError: it is not a checkpoint, or of a version that cannot be read.
        CorruptDataError: all digests are right, but it is not a network.
    """
    verify_checkpoint(folder)
    return load_network(folder / WEIGHTS)


def load_weights_alone(folder: Path) -> Network:
    """The network of the checkpoint in ``folder``, of which other files may be missing or damaged.

    Raises:
        DamagedFolderError: its own file is missing or damaged.
        UnknownVersionError, CorruptDataError: as :func:`load_weights`.
    """
    check_kind_of(folder, verify_files(folder, [WEIGHTS]))
    return load_network(folder / WEIGHTS)


def load_trainer(
    folder: Path, game: Game, device: torch.device | str = "cpu", ranks: Ranks = ALONE,
    settings: TrainingSettings | None = None, shape: NetConfig | None = None,
) -> Trainer:
    """The trainer saved in ``folder``, after its digests were checked; see :class:`Trainer`.

    However many ranks it was saved by, it may go on with any number; and under other ``settings``.
    A network of another ``shape`` than this one grows into it, with a new optimiser.

    Raises:
        DamagedFolderError: a file is missing or damaged.
        UnknownVersionError: as :func:`load_weights`; or all digests are right, and yet it is not
            the state of this trainer and network.
        CorruptDataError: as :func:`load_weights`.
        UsageError: there are more ranks than micro-batches.
    """
    network = load_weights(folder)
    with readable(folder):
        state = read_json(folder / TRAINER)
        if settings is None:
            gone = ("policy_loss", "entropy_bonus")  # in earlier versions
            stored = {name: state["settings"][name] for name in state["settings"].keys() - gone}
            settings = TrainingSettings(**stored)
        shape = shape or network.config
        grows = shape != network.config
        if grows:
            seed = derive_seed(state["seed"], "growth", state["steps_done"])
            network = network.with_config(shape, seed)
        trainer = Trainer(game, network, settings, state["seed"], device, ranks=ranks)
        trainer.steps_done = state["steps_done"]
        trainer.step_in_iteration = state["step_in_iteration"]
        trainer.rng.bit_generator.state = state["sampling_rng"]
        if not grows:
            tensors, _ = read_tensors(folder / OPTIMIZER)
            _restore_optimizer(trainer, tensors)
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
    if trainer.average is not None:
        for name, value in trainer.network.state_dict().items():
            tensors[f"{_TRAINED}.{name}"] = value.detach().cpu().contiguous()
    return tensors


def _restore_optimizer(trainer: Trainer, tensors: dict[str, Tensor]) -> None:
    _restore_trained(trainer, tensors)
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


def _restore_trained(trainer: Trainer, tensors: dict[str, Tensor]) -> None:
    """Take the trained weights out of ``tensors``; without any they are those that play."""
    keys = [key for key in tensors if key.startswith(f"{_TRAINED}.")]
    trained = {key.partition(".")[2]: tensors.pop(key) for key in keys}
    if trained:
        try:
            trainer.network.load_state_dict(trained)
        except RuntimeError as error:
            raise ValueError(f"the trained weights: {error}") from error
