"""The frozen network against the one it was made of, and precisions against each other."""

from dataclasses import fields, replace

import pytest
import torch
from torch.nn.functional import kl_div

from chess_snn.nets import NetConfig, build_network, freeze, net_config, network_digest
from chess_snn.nets.inference_neurons import InferenceNeurons

TINY = net_config("tiny")
ODD = NetConfig(blocks=2, channels=5, value_channels=3, value_hidden=7, decay=0.6, threshold=0.7)
ONE_CHANNEL = replace(ODD, channels=1, value_channels=1)
CONFIGS = {
    "T2": TINY, "T1": net_config("tiny", ticks=1), "T3": net_config("tiny", ticks=3), "odd": ODD,
    "one channel": ONE_CHANNEL, "baseline": TINY.baseline(),
}


def trained_statistics(spec, config, planes):
    """A network whose running means and variances are no longer 0 and 1."""
    network = build_network(spec, config, 0).train()
    with torch.no_grad():
        for _ in range(8):
            network(planes)
    return network.eval()


def policies(positions, output):
    return positions.legal_logits(output.policy_logits_BA).softmax(1)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_folding_changes_nothing_but_rounding(spec, positions, config):
    planes = positions.tensor()
    network = trained_statistics(spec, config, planes)
    with torch.inference_mode():
        expected, folded = network(planes), freeze(network, "fp32")(planes)
    error = (folded.policy_logits_BA - expected.policy_logits_BA).abs().amax(1)
    value_error = (folded.value_logits_BV - expected.value_logits_BV).abs().amax(1)
    # A current within rounding of the threshold may spike in one and not in the other, and a whole
    # row then differs a little; without spikes nothing may.
    exact = (error < 1e-4) & (value_error < 1e-4)
    if config.is_spiking:
        assert exact.float().mean() > 0.8
        assert error.max() < 1
    else:
        assert exact.all()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", ["T2", "T1", "T3", "odd", "one channel"])
def test_compiled_neurons_give_the_references_logits(spec, positions, name, precision):
    config, planes = CONFIGS[name], positions.tensor()
    network = trained_statistics(spec, config, planes)
    compiled = freeze(network, precision)
    reference = freeze(network, precision, neurons=InferenceNeurons(config))
    assert (compiled.neurons.kind, reference.neurons.kind) == ("compiled", "reference")
    with torch.inference_mode():
        ours, expected = compiled(planes), reference(planes)
    assert torch.equal(ours.policy_logits_BA, expected.policy_logits_BA)
    assert torch.equal(ours.value_logits_BV, expected.value_logits_BV)


@pytest.mark.parametrize("config", [
    TINY, pytest.param(TINY.baseline(), marks=pytest.mark.slow),
], ids=["spiking", "baseline"])
def test_bf16_says_nearly_what_fp32_says(spec, positions, overfit, config):
    positions = positions[:32]
    network = build_network(spec, config, 0)
    overfit(network, positions, steps=40)
    planes = positions.tensor()
    with torch.inference_mode():
        fp32, bf16 = freeze(network, "fp32")(planes), freeze(network, "bf16")(planes)
    ours, expected = policies(positions, bf16), policies(positions, fp32)
    divergence = kl_div(ours.clamp_min(1e-12).log(), expected, reduction="batchmean")
    agreement = (ours.argmax(1) == expected.argmax(1)).float().mean()
    bf16_B3, fp32_B3 = bf16.value_logits_BV.softmax(1), fp32.value_logits_BV.softmax(1)
    wdl_distance = (bf16_B3 - fp32_B3).abs().sum(1) / 2
    assert 0 < divergence < 0.1
    assert agreement > 0.7
    assert wdl_distance.mean() < 0.05


def test_bf16_flips_few_spikes(spec, positions):
    planes = positions.tensor()
    network = trained_statistics(spec, TINY, planes)
    spikes = {}
    for precision in ("fp32", "bf16"):
        frozen = freeze(network, precision, neurons=RecordingNeurons(TINY))
        with torch.inference_mode():
            frozen(planes)
        spikes[precision] = torch.cat(frozen.neurons.fired)
    flips = (spikes["fp32"] != spikes["bf16"]).float().mean()
    assert 0 < flips < 0.1


class RecordingNeurons(InferenceNeurons):
    """Keeps all that is fired."""

    def __init__(self, config):
        super().__init__(config)
        self.fired = []

    def fire(self, current_TBX, bias_C=None):
        spikes_TBX = super().fire(current_TBX, bias_C)
        self.fired.append(spikes_TBX.float().flatten())
        return spikes_TBX


def test_a_frozen_network_is_a_copy_without_gradient(spec, positions):
    network = build_network(spec, TINY, 0).train()
    before = network_digest(network)
    frozen = freeze(network, "bf16")
    output = frozen(positions[:2].tensor())
    assert network.training
    assert network_digest(network) == before
    assert not output.policy_logits_BA.requires_grad
    assert output.policy_logits_BA.dtype == torch.float32
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    assert torch.equal(
        frozen(positions[:2].tensor()).policy_logits_BA, output.policy_logits_BA
    )


def test_a_frozen_network_does_not_carry_what_only_training_asks_for(spec, positions):
    network = build_network(spec, TINY, 0)
    frozen = freeze(network, "fp32")
    output = frozen(positions[:4].tensor())
    assert {field.name for field in fields(output)} == {"policy_logits_BA", "value_logits_BV"}
    kept = {tensor.shape for tensor in frozen.state_dict().values()}
    assert network.value.plies_left_readout.weight.shape not in kept
