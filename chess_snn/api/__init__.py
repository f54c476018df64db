"""The public interface behind ``import chess_snn``, one topic a module."""
