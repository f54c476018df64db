"""What spikes cost for their strength: networks trained on the same games, rated and counted.

::

    plan = begin_study(out, request)       # fixed at the first start; another request is refused
    report = run_study(plan, ladder, …)    # goes on where it was interrupted
"""
