"""Model selection with few labels: splitters, scorers, a documented rule for ties, and a search.

scikit-learn's splitters would put unlabeled rows (−1) into the test part, where every prediction
counts as an error. Here the labeled rows alone are split, and unlabeled rows stay in training.
`S3VMSearchCV` searches a grid as scikit-learn's ``GridSearchCV`` does, and computes once what
settings have in common.
"""

from s3vm_lib.model_selection._labeled import LabeledMetric as LabeledMetric
from s3vm_lib.model_selection._labeled import PreferSmallest as PreferSmallest
from s3vm_lib.model_selection._labeled import SemiSupervisedKFold as SemiSupervisedKFold
from s3vm_lib.model_selection._labeled import labeled_accuracy as labeled_accuracy
from s3vm_lib.model_selection._labeled import labeled_accuracy_scorer as labeled_accuracy_scorer
from s3vm_lib.model_selection._search import S3VMSearchCV as S3VMSearchCV
from s3vm_lib.model_selection._with_unlabeled import WithUnlabeled as WithUnlabeled

__all__ = [name for name in dir() if not name.startswith("_")]
