"""Networks whose normalisation has something to fold, and whose neurons fire."""

import torch

from chess_snn.games import GameSpec
from chess_snn.nets import NetConfig, Network, build_network


def lively_network(spec: GameSpec, config: NetConfig) -> Network:
    network = build_network(spec, config, seed=1).eval()
    for number, module in enumerate(network.modules()):
        if isinstance(module, torch.nn.BatchNorm2d):
            generator = torch.Generator().manual_seed(number)
            module.running_mean.normal_(0.0, 0.3, generator=generator)
            module.running_var.uniform_(0.5, 2.0, generator=generator)
            module.bias.data.normal_(0.2, 0.3, generator=generator)
    return network
