"""Choosing actions with a network: every search behind one interface."""

from chess_snn.search.base import Search, SearchResult
from chess_snn.search.growing import GrowingTree
from chess_snn.search.lines import Line
from chess_snn.search.make import make_match_search, make_search, make_tree_search
from chess_snn.search.policy import PolicySearch
from chess_snn.search.report import RootReport
from chess_snn.search.settings import MAX_SIMULATIONS, SearchKind, SearchSettings
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
