"""Label switching: guess the labels, train a supervised machine, exchange what looks wrong, repeat.

`_light` holds S3VM-light (Joachims, 1999), `S3VMLight`, with kernels and one or many pairs at a
time; `_multi_switch` holds `MultiSwitchTSVM` (Sindhwani and Keerthi, 2006), which switches labels
of a linear model in bulk.
"""

from s3vm_lib.label_switching._light import LightSolution as LightSolution
from s3vm_lib.label_switching._light import Round as Round
from s3vm_lib.label_switching._light import S3VMLight as S3VMLight
from s3vm_lib.label_switching._light import solve_s3vm_light as solve_s3vm_light
from s3vm_lib.label_switching._light import switch_gain as switch_gain
from s3vm_lib.label_switching._light import worst_pairs as worst_pairs
from s3vm_lib.label_switching._multi_switch import Level as Level
from s3vm_lib.label_switching._multi_switch import MultiSwitchTSVM as MultiSwitchTSVM
from s3vm_lib.label_switching._multi_switch import Solution as Solution
from s3vm_lib.label_switching._multi_switch import solve_multi_switch as solve_multi_switch
from s3vm_lib.label_switching._multi_switch import top_labels as top_labels

__all__ = [name for name in dir() if not name.startswith("_")]
