"""Label switching: guess the labels, train a supervised machine, exchange what looks wrong, repeat.

`_light` holds S3VM-light (Joachims, 1999): `S3VMLight`.
"""

from s3vm_lib.label_switching._light import (
    LightSolution,
    Round,
    S3VMLight,
    annealing_levels,
    first_labels,
    settle,
    solve_s3vm_light,
    switch_gain,
    worst_pairs,
    wrong_signs,
)

__all__ = [
    "Round",
    "S3VMLight",
    "LightSolution",
    "annealing_levels",
    "first_labels",
    "settle",
    "solve_s3vm_light",
    "switch_gain",
    "worst_pairs",
    "wrong_signs",
]
