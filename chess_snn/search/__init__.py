"""Choosing actions with a network: every search behind one interface."""

from chess_snn.search.base import PolicySearch, Search, SearchResult
from chess_snn.search.growing import GrowingTree
from chess_snn.search.report import Line, RootReport
from chess_snn.search.settings import (
    MAX_SIMULATIONS,
    SearchKind,
    SearchSettings,
    make_match_search,
    make_search,
    make_tree_search,
)
from chess_snn.search.tree_search import TreeSearch
from chess_snn.search.trees import check_memory, tree_bytes

__all__ = [
    "MAX_SIMULATIONS",
    "GrowingTree",
    "Line",
    "PolicySearch",
    "RootReport",
    "Search",
    "SearchKind",
    "SearchResult",
    "SearchSettings",
    "TreeSearch",
    "check_memory",
    "make_match_search",
    "make_search",
    "make_tree_search",
    "tree_bytes",
]
