"""Label switching: guess the labels, train a supervised machine, exchange what looks wrong, repeat.

`_light` holds S3VM-light (Joachims, 1999), `S3VMLight`, with kernels and one or many pairs at a
time; `_multi_switch` holds `MultiSwitchTSVM` (Sindhwani and Keerthi, 2006), which switches labels
of a linear model in bulk.
"""

from s3vm_lib.label_switching._light import (  # isort: skip
    LightSolution, Round, S3VMLight, solve_s3vm_light, switch_gain, top_labels, worst_pairs,
)  # fmt: skip

from s3vm_lib.label_switching._multi_switch import (  # isort: skip
    Level, MultiSwitchTSVM, Solution, solve_multi_switch,
)  # fmt: skip

__all__ = [
    "Level", "LightSolution", "MultiSwitchTSVM", "Round", "S3VMLight", "Solution",
    "solve_multi_switch", "solve_s3vm_light", "switch_gain", "top_labels", "worst_pairs",
]  # fmt: skip
