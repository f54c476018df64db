"""Experiments: variants of a campaign or a training, with several seeds, and a verdict on each.

Imports go one way: ``cost``, ``file`` and ``verdict`` first; then ``rating`` and ``runs``; then
``judging``; then ``tuning``; then ``results``.
"""
