"""Losses of labeled and of unlabeled points: all formulas, and what theory needs to know of them.

Two views of the same formulas. The compiled scalar functions, such as `labeled_value` and
`unlabeled_derivative`, take an integer code and are called from the inner loops of the solvers; a
code that none of them knows gives NaN. The frozen dataclasses `LabeledLoss` and `UnlabeledLoss`
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

from s3vm_lib.losses._labeled import EPSILON_INSENSITIVE as EPSILON_INSENSITIVE
from s3vm_lib.losses._labeled import HINGE as HINGE
from s3vm_lib.losses._labeled import L1 as L1
from s3vm_lib.losses._labeled import LABELED_LOSSES as LABELED_LOSSES
from s3vm_lib.losses._labeled import LOGISTIC as LOGISTIC
from s3vm_lib.losses._labeled import MODIFIED_LOGISTIC as MODIFIED_LOGISTIC
from s3vm_lib.losses._labeled import SMOOTH_HINGE as SMOOTH_HINGE
from s3vm_lib.losses._labeled import SQUARED_HINGE as SQUARED_HINGE
from s3vm_lib.losses._labeled import conjugate_curvature as conjugate_curvature
from s3vm_lib.losses._labeled import dual_cost as dual_cost
from s3vm_lib.losses._labeled import dual_ridge as dual_ridge
from s3vm_lib.losses._labeled import labeled_conjugate as labeled_conjugate
from s3vm_lib.losses._labeled import labeled_curvature as labeled_curvature
from s3vm_lib.losses._labeled import labeled_derivative as labeled_derivative
from s3vm_lib.losses._labeled import labeled_value as labeled_value
from s3vm_lib.losses._labeled import sigmoid as sigmoid
from s3vm_lib.losses._labeled import slope_piece as slope_piece
from s3vm_lib.losses._labeled import slope_range as slope_range
from s3vm_lib.losses._labeled import softplus as softplus
from s3vm_lib.losses._objects import LabeledLoss as LabeledLoss
from s3vm_lib.losses._objects import Pieces as Pieces
from s3vm_lib.losses._objects import UnlabeledLoss as UnlabeledLoss
from s3vm_lib.losses._objects import labeled_loss as labeled_loss
from s3vm_lib.losses._objects import unlabeled_loss as unlabeled_loss
from s3vm_lib.losses._unlabeled import GAUSSIAN as GAUSSIAN
from s3vm_lib.losses._unlabeled import SQUARED_SYMMETRIC_HINGE as SQUARED_SYMMETRIC_HINGE
from s3vm_lib.losses._unlabeled import SYMMETRIC_HINGE as SYMMETRIC_HINGE
from s3vm_lib.losses._unlabeled import SYMMETRIC_RAMP as SYMMETRIC_RAMP
from s3vm_lib.losses._unlabeled import UNLABELED_LOSSES as UNLABELED_LOSSES
from s3vm_lib.losses._unlabeled import labeled_code as labeled_code
from s3vm_lib.losses._unlabeled import unlabeled_curvature as unlabeled_curvature
from s3vm_lib.losses._unlabeled import unlabeled_derivative as unlabeled_derivative
from s3vm_lib.losses._unlabeled import unlabeled_value as unlabeled_value

__all__ = [name for name in dir() if not name.startswith("_")]
