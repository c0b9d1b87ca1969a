"""What the estimators that assign labels share."""

import numpy as np

from s3vm_lib.base.classifier import BaseS3VM


class LabelSwitching(BaseS3VM):
    """Counts of rows need equal weights; the labels of a fit are kept as ``assigned_``."""

    def _check_weights(self, data):
        weight = data.sample_weight[data.codes < 0]
        if self.balance is not None and weight.size and np.ptp(weight) > 0:
            raise ValueError(
                "sample_weight must give all unlabeled rows an equal weight (or 0), because "
                f"{type(self).__name__} counts them, got values from {weight.min():g} to "
                f"{weight.max():g}; balance=None allows any weights"
            )

    def _transduce(self, X, codes, rows, fits):
        found = super()._transduce(X, codes, rows, fits)
        assigned = np.zeros((len(fits), codes.size))
        assigned[:, rows] = [fit.extra["labels"] for fit in fits]
        self.assigned_ = assigned
        return found
