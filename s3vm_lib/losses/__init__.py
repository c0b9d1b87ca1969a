"""Losses of labeled and of unlabeled points: all formulas, and the constants that theory needs.

Two views of the same formulas. The compiled scalar functions, such as `labeled_value` and
`unlabeled_derivative`, take an integer code and are called from the inner loops of the solvers; a
code of no loss gives NaN. The frozen dataclasses `LabeledLoss` and `UnlabeledLoss`
apply them to arrays and carry constants and DC parts.

With z = y·f for a label y = ±1 and an output f, the labeled losses are

====================  ===========================================  ==========================
name                  ℓ(y, f)                                      parameter p
====================  ===========================================  ==========================
hinge                 max(0, 1 − z)
squared_hinge         ½ max(0, 1 − z)²
smooth_hinge          0, (1 − z)²/(2p) or 1 − z − p/2              width of the curved part
logistic              log(1 + exp(−z))
modified_logistic     log(1 + exp(p(1 − z)))/p                     sharpness
l1                    ``|y − f|``
epsilon_insensitive   ``max(0, |y − f| − p)``                      half width of the flat part
====================  ===========================================  ==========================

and the unlabeled losses, all of them even functions of f,

=============================  ==================================  ==========================
name                           u(f)                                parameter p
=============================  ==================================  ==========================
symmetric_hinge                ``max(0, 1 − |f|)``
squared_symmetric_hinge        ``½ max(0, 1 − |f|)²``
symmetric_ramp                 R(f) + R(−f), where                 where the ramp ends: R is
                               R(z) = min(1 − p, max(0, 1 − z))    constant for z ≤ p
gaussian                       exp(−p f²)                          inverse squared width
symmetric_smooth_hinge         the smooth hinge at ``z = |f|``     width of the curved part
symmetric_logistic             ``log(1 + exp(−|f|))``
symmetric_modified_logistic    ``log(1 + exp(p(1 − |f|)))/p``      sharpness
symmetric_l1                   ``|1 − |f||``
symmetric_epsilon_insensitive  ``max(0, |1 − |f|| − p)``           half width of the flat part
=============================  ==================================  ==========================

All but the ramp and the Gaussian are *effective* losses, the least loss over both labels:
min over y = ±1 of ℓ(y, f), which is ``ℓ(1, |f|)`` (`LabeledLoss.effective`).

Where a loss has a kink the derivative returned is one of its subgradients: that of the flat side
at a margin, and 0 at the kink of symmetry f = 0.
"""

from s3vm_lib.losses._formulas import (  # isort: skip
    LABELED_LOSSES, UNLABELED_LOSSES, conjugate_curvature, dual_cost, dual_ridge,
    labeled_conjugate, labeled_curvature, labeled_derivative, labeled_value, sigmoid,
    slope_piece, slope_range, unlabeled_curvature, unlabeled_derivative, unlabeled_value,
)  # fmt: skip

from s3vm_lib.losses._objects import (  # isort: skip
    LabeledLoss, Pieces, UnlabeledLoss, labeled_loss, unlabeled_loss,
)  # fmt: skip

__all__ = [
    "LABELED_LOSSES", "UNLABELED_LOSSES", "LabeledLoss", "Pieces", "UnlabeledLoss",
    "conjugate_curvature", "dual_cost", "dual_ridge", "labeled_conjugate", "labeled_curvature",
    "labeled_derivative", "labeled_loss", "labeled_value", "sigmoid", "slope_piece",
    "slope_range", "unlabeled_curvature", "unlabeled_derivative", "unlabeled_loss",
    "unlabeled_value",
]  # fmt: skip
