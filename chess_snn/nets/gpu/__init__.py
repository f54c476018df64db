"""Kernels for GPUs, in Triton's language and CUDA C++, and the evaluator that captures them."""
