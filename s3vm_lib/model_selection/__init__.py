"""Model selection with few labels: splitters, scorers, a documented rule for ties, and a search.

scikit-learn's splitters would put unlabeled rows (−1) into the test part, where every prediction
counts as an error. Here the labeled rows alone are split, and unlabeled rows stay in training.
`S3VMSearchCV` searches a grid as scikit-learn's ``GridSearchCV`` does, and computes once what
settings have in common.
"""

from s3vm_lib.model_selection._search import S3VMSearchCV
from s3vm_lib.model_selection._with_unlabeled import WithUnlabeled

from s3vm_lib.model_selection._labeled import (  # isort: skip
    LabeledMetric, PreferSmallest, SemiSupervisedKFold, labeled_accuracy, labeled_accuracy_scorer,
)  # fmt: skip

__all__ = [
    "LabeledMetric", "PreferSmallest", "S3VMSearchCV", "SemiSupervisedKFold", "WithUnlabeled",
    "labeled_accuracy", "labeled_accuracy_scorer",
]  # fmt: skip
