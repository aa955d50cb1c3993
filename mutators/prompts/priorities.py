"""How much each part of a prompt matters: what has less is shortened first."""

ESSENTIAL = 100
WORKLOAD = 90
CAUSE = 80
VERDICT = 70
LISTING = 65
DEVICE = 60
MEMORY = 50
OTHERS = 40
"""Of the first kernel beside the parent; each further one has one less."""
