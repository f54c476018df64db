"""A soak: campaigns under a random schedule of faults, and then the proof that nothing was lost.

    python -m tests.soak --minutes 30 --seed 1 --out soak-results

See docs/reliability.md. The modules, from the outside in: ``soak`` (all rounds), ``round`` (one
campaign, its faults and its resumptions), ``schedule`` (which fault comes when), ``injections``
(how each is done), ``audit`` (what is proved afterwards), ``report`` (what is kept of it).
"""
