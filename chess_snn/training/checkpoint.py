"""Checkpoints: weights, optimiser, place in the schedule and random state, as one committed folder.

::

    gen-000012/
      weights.safetensors     what self-play, evaluation and the registry load
      optimizer.safetensors   moments of AdamW; in fp16, the loss scale; where the weights are a
                              running average, those that are trained
      trainer.json            counters, settings, the sampling stream
      MANIFEST.json           sizes and SHA-256 of the above

Nothing in it is a pickle. A trainer loaded from it goes on exactly as the one that was saved.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from chess_snn.data import (
    Manifest,
    StoredFormat,
    read_json,
    staged_folder,
    verify_files,
    verify_folder,
    write_json,
)
from chess_snn.data.manifest import check_kind
from chess_snn.errors import ConfigError, CorruptDataError, UnknownVersionError
from chess_snn.games.base import Game
from chess_snn.known import WEIGHTS
from chess_snn.nets import (
    Network,
    load_network,
    network_digest,
    save_network,
    write_tensors,
)
from chess_snn.nets.model.weights import read_tensors
from chess_snn.training.ranks import ALONE, Ranks
from chess_snn.training.settings import TrainingSettings
from chess_snn.training.trainer import Trainer
from chess_snn.types import Json

_OPTIMIZER = "optimizer.safetensors"
_TRAINER = "trainer.json"
CHECKPOINT_FORMAT: Final = StoredFormat("checkpoint", version=1)
_LOSS_SCALE = "loss_scale"
"""Names its tensors beside the numbers that name parameters."""
_TRAINED = "trained"
"""Names the trained weights and running statistics likewise."""
_STEP = "step"
"""AdamW's name for the one entry of a parameter's state that has not the parameter's shape."""
_MISFITS = (ConfigError, KeyError, TypeError, ValueError, IndexError)
"""Errors of bytes that are intact and yet not the state of this trainer and network."""


def save_checkpoint(folder: Path, trainer: Trainer, meta: Json) -> Manifest:
    """Commit ``trainer`` to ``folder``; where it is committed already, return what is there."""
    own = {
        "checkpoint_version": CHECKPOINT_FORMAT.version,
        "weights_digest": network_digest(trainer.playing_network),
    }
    with staged_folder(folder) as stage:
        save_network(stage.path / WEIGHTS, trainer.playing_network)
        write_tensors(stage.path / _OPTIMIZER, _optimizer_tensors(trainer))
        write_json(stage.path / _TRAINER, _trainer_state(trainer))
        return stage.commit(kind=CHECKPOINT_FORMAT.name, meta=own | meta)


def load_weights(folder: Path) -> Network:
    """The network of the checkpoint in ``folder``, after all digests were checked.

    Raises:
        DamagedFolderError: a file is missing or damaged.
        UnknownVersionError: it is not a checkpoint, or of a version that cannot be read.
        CorruptDataError: all digests are right, but it is not a network.
    """
    _verify(folder)
    return load_network(folder / WEIGHTS)


def load_weights_alone(folder: Path) -> Network:
    """The network of the checkpoint in ``folder``, of which other files may be missing or damaged.

    Raises:
        DamagedFolderError: its own file is missing or damaged.
        UnknownVersionError, CorruptDataError: as :func:`load_weights`.
    """
    _check_kind(folder, verify_files(folder, [WEIGHTS]))
    return load_network(folder / WEIGHTS)


def check_checkpoint(folder: Path) -> Manifest:
    """The manifest of the checkpoint in ``folder``, from which training could go on.

    Raises:
        DamagedFolderError, UnknownVersionError, CorruptDataError: as :func:`load_weights`.
    """
    manifest = _verify(folder)
    with _readable(folder):
        digest = network_digest(load_network(folder / WEIGHTS))
        if digest != manifest.meta.get("weights_digest"):
            raise CorruptDataError(
                f"the weights in {folder} have digest {digest[:12]}…, its manifest says "
                f"{str(manifest.meta.get('weights_digest'))[:12]}…"
            )
        read_json(folder / _TRAINER)
        read_tensors(folder / _OPTIMIZER)
    return manifest


def load_trainer(
    folder: Path, game: Game, device: torch.device | str = "cpu", ranks: Ranks = ALONE,
    settings: TrainingSettings | None = None,
) -> Trainer:
    """The trainer saved in ``folder``, after its digests were checked; see :class:`Trainer`.

    However many ranks it was saved by, it may go on with any number; and under other ``settings``.

    Raises:
        DamagedFolderError: a file is missing or damaged.
        UnknownVersionError: as :func:`load_weights`; or all digests are right, and yet it is not
            the state of this trainer and network.
        CorruptDataError: as :func:`load_weights`.
        UsageError: there are more ranks than micro-batches.
    """
    network = load_weights(folder)
    with _readable(folder):
        state = read_json(folder / _TRAINER)
        if settings is None:
            settings = TrainingSettings(**state["settings"])
        trainer = Trainer(game, network, settings, state["seed"], device, ranks=ranks)
        trainer.steps_done = state["steps_done"]
        trainer.step_in_iteration = state["step_in_iteration"]
        trainer.rng.bit_generator.state = state["sampling_rng"]
        tensors, _ = read_tensors(folder / _OPTIMIZER)
        _restore_optimizer(trainer, tensors)
    return trainer


def _verify(folder: Path) -> Manifest:
    """The manifest of a checkpoint that is what was committed."""
    manifest = verify_folder(folder)
    _check_kind(folder, manifest)
    return manifest


def _check_kind(folder: Path, manifest: Manifest) -> None:
    check_kind(folder, manifest, CHECKPOINT_FORMAT, manifest.meta.get("checkpoint_version"))


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    """Take what does not fit, though all digests are right, for what another version wrote.

    This is not corruption, which would be quarantined and rebuilt: the file may be needed.
    """
    try:
        yield
    except _MISFITS as error:
        raise UnknownVersionError(
            f"checkpoint {folder} does not hold a trainer this version can read: {error!r}; "
            "go on with the program that wrote it"
        ) from error


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
    for name, value in trainer.loss_scale.state().items():
        tensors[f"{_LOSS_SCALE}.{name}"] = value.cpu()
    if trainer.average is not None:
        for name, value in trainer.network.state_dict().items():
            tensors[f"{_TRAINED}.{name}"] = value.detach().cpu().contiguous()
    return tensors


def _restore_optimizer(trainer: Trainer, tensors: dict[str, Tensor]) -> None:
    _restore_loss_scale(trainer, tensors)
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


def _restore_loss_scale(trainer: Trainer, tensors: dict[str, Tensor]) -> None:
    """Take it out of ``tensors``; it stays the first one where there is none among them."""
    for name, ours in trainer.loss_scale.state().items():
        key = f"{_LOSS_SCALE}.{name}"
        stored = tensors.pop(key, ours)
        if stored.shape != ours.shape:
            raise ValueError(f"{key} has shape {list(stored.shape)}, not {list(ours.shape)}")
        ours.copy_(stored)
