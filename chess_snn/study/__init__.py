"""Costs of spikes beside their strength: networks trained on the same games, rated and counted.

::

    plan = begin_study(out, request, say)     # fixed at the first start; another request is refused
    results = StudyRun(plan, ladder, …).run() # goes on where it was interrupted
"""
