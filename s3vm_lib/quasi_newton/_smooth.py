"""What the estimators for differentiable objectives share: `QNS3VM` and Newton's method."""

import numpy as np

from s3vm_lib._base import BaseS3VM, BinaryFit
from s3vm_lib.losses import labeled_loss, unlabeled_loss
from s3vm_lib.objective import Problem


def annealing_stages(annealing, schedules):
    """The factors of C*, one for each stage of an annealing.

    Parameters
    ----------
    annealing : str or sequence of float
        One of the names, or the factors themselves.
    schedules : dict of str to tuple
        The factors that the names stand for.

    Returns
    -------
    tuple of float

    Raises
    ------
    ValueError
        For a sequence that does not increase from a positive number to 1.
    """
    if isinstance(annealing, str):
        return schedules[annealing]
    stages = np.asarray(annealing, dtype=float)
    rising = stages.ndim == 1 and stages.size > 0 and np.all(np.diff(stages) > 0)
    if not (rising and stages[0] > 0 and stages[-1] == 1):
        raise ValueError(
            f"annealing must be one of {sorted(schedules)} or an increasing sequence of "
            f"positive numbers that ends with 1, got {annealing!r}"
        )
    return tuple(stages.tolist())


class SmoothS3VM(BaseS3VM):
    """Losses by name, stages of annealing, and the model that coordinates stand for.

    Subclasses have the parameters ``labeled_loss``, ``sharpness``, ``unlabeled_loss``, ``s``,
    ``fit_intercept`` and ``annealing``, and name their schedules in ``_schedules``.
    """

    _schedules = {}

    def _check_intercept(self):
        if not self.fit_intercept and self.balance is not None:
            raise ValueError(
                "fit_intercept=False needs balance=None, because the balance constraint sets the "
                f"offset; got balance={self.balance!r}"
            )

    def _stages(self):
        """The factors of C*, one for each stage."""
        return annealing_stages(self.annealing, self._schedules)

    def _problem(self, data, ratio):
        """What is minimized; ``ratio`` None leaves the balance constraint out."""
        sharpness = self.sharpness if self.labeled_loss == "modified_logistic" else None
        s = self.s if self.unlabeled_loss == "gaussian" else None
        balance_tol = getattr(self, "balance_tol", None)
        balance = "mean" if balance_tol is None else "share"
        return Problem(
            labeled_loss(self.labeled_loss, sharpness),
            unlabeled_loss(self.unlabeled_loss, s),
            *self._penalties(data),
            data.kernel,
            "free" if self.fit_intercept else "none",
            "none" if ratio is None else balance,
            ratio,
            balance_tol or 0.0,
        )

    def _report_stage(self, stage, w, b):
        return self._report({k: v for k, v in stage._asdict().items() if k != "status"})

    def _model(self, data, coordinates, solution):
        """The solution in coordinates as a `BinaryFit`."""
        support, coefficients, constant = coordinates.model(solution.weights)
        dual, coef = None, None
        if support is None:
            coef = data.kernel.sigma_f * coefficients
        else:
            dual = np.zeros(data.codes.size)
            dual[support] = coefficients
            if data.kernel.name == "linear":
                coef = data.kernel.sigma_f**2 * (dual @ data.X)
        return BinaryFit(
            dual,
            coef,
            solution.offset + constant,
            solution.outputs,
            solution.objective,
            solution.n_iter,
            solution.status,
            list(solution.history),
        )
