"""Choosing actions with a network: every search behind one interface."""

from typing import TYPE_CHECKING

from chess_snn.known import MAX_SIMULATIONS
from chess_snn.later import exports

if TYPE_CHECKING:
    from chess_snn.search.base import PolicySearch, Search, SearchResult
    from chess_snn.search.growing import GrowingTree
    from chess_snn.search.report import Line, RootReport
    from chess_snn.search.settings import SearchKind, SearchSettings, make_search
    from chess_snn.search.tree_search import TreeSearch
    from chess_snn.search.trees import check_memory, tree_bytes
else:
    __getattr__ = exports(__name__)
