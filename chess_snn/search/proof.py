"""What a tree proves: wins and losses that no answer can avert.

A node is won as soon as one action leads to a lost one, and lost once all of them lead to won ones
(Winands, Björnsson & Saito 2008, §3.1). For games of two players who take turns.

Dimensions: N nodes.
"""

from typing import Final

import numpy as np

from chess_snn.jit import kernel
from chess_snn.search.trees import Trees
from chess_snn.types import Int32Array

UNPROVED: Final = 0
_LOST_NOW: Final = -1


@kernel
def prove(
    trees: Trees, proofs: Int32Array, heights: Int32Array, refuted: Int32Array, slowest: Int32Array
) -> None:
    """Fill ``proofs`` and ``heights`` int32[N] for every node of the one tree.

    A proof is p + 1 where the side to move wins in p plies at best, -(p + 1) where it loses after
    p plies at most, else ``UNPROVED``; a height is how many plies the tree goes on below the node.
    ``refuted`` and ``slowest`` int32[N] are scratch.
    """
    used = trees.nodes_used[0]
    proofs[:used] = UNPROVED
    heights[:used] = 0
    refuted[:used] = 0
    slowest[:used] = 0
    # Children come behind their parents: each node is complete when its turn comes.
    for node in range(used - 1, -1, -1):
        count = trees.num_edges[0, node]
        if count == 0:
            if trees.reward[0, node] > 0:
                proofs[node] = _LOST_NOW
        elif proofs[node] == UNPROVED and refuted[node] == count:
            proofs[node] = -slowest[node]
        if node == 0:
            break
        parent, proof = trees.parent[0, node], proofs[node]
        heights[parent] = max(heights[parent], heights[node] + 1)
        if proof < 0:
            win = np.int32(1 - proof)
            if proofs[parent] == UNPROVED or win < proofs[parent]:
                proofs[parent] = win
        elif proof > 0:
            refuted[parent] += 1
            slowest[parent] = max(slowest[parent], proof + 1)
