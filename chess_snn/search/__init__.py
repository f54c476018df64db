"""Choosing actions with a network: every search behind one interface."""

from chess_snn.search.base import Search, SearchResult
from chess_snn.search.policy import PolicySearch

__all__ = ["PolicySearch", "Search", "SearchResult"]
