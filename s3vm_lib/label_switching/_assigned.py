"""What the estimators that assign labels share."""

import numpy as np

from s3vm_lib._base import BaseS3VM


class LabelSwitching(BaseS3VM):
    """Counts of rows need equal weights; the assigned labels are kept as ``assigned_``."""

    def _check_weights(self, data):
        weight = data.sample_weight[data.codes < 0]
        if self.balance is not None and weight.size and np.ptp(weight) > 0:
            raise ValueError(
                "sample_weight must give all unlabeled rows an equal weight (or 0), because "
                f"{type(self).__name__} counts them, got values from {weight.min():g} to "
                f"{weight.max():g}; balance=None allows any weights"
            )
        self.assigned_ = []

    def _assign(self, labels, rows, n):
        """Keep the labels of the training rows ``rows``, 0 elsewhere."""
        assigned = np.zeros(n)
        assigned[rows] = labels
        self.assigned_.append(assigned)

    def _transduce(self, X, codes, rows, fits):
        super()._transduce(X, codes, rows, fits)
        assigned = np.zeros((len(fits), codes.size))
        assigned[:, rows] = self.assigned_
        self.assigned_ = assigned
