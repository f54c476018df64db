"""Kernels for processors, and the evaluator that runs them."""
