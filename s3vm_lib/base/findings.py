"""A look at the result of a fit: does it contradict the labels, the shares or the objective?

Everything here reads arrays. `BaseS3VM` looks after every fit, the estimators around other
estimators look at what they return.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from s3vm_lib.utils.row_blocks import spread

FEWEST = 3.0  # expected rows of a class that must not be missing from the answers
ODDS = 3.0  # factor between the odds of a share that was asked for and those that came out
_SPARED = 0.02  # share of its labels that a machine may err on beyond the supervised one
COMPARED = 500  # labeled rows up to which the supervised machine is fitted
_PROBED = 32  # rows whose kernel values are looked at
_PARTED = 1e-3  # relative difference in J, or a miss of the mean output, that is not rounding alone
_TINY = 1e-6  # outputs below this share of the largest may change sides
_WRONG = 0.01  # relative difference in J of a solver that has not converged
_ALIKE = 1e-3  # relative: smaller differences between kernel values, or smaller values, are none


class FitWarning(UserWarning):
    """A fit ended, but its result contradicts what was asked of it.

    Every estimator looks at the result of `fit`. What it finds is kept in the attribute
    ``findings_``, a dict that is empty as a rule, and issued as one warning. After ``partial_fit``
    these are limits, rounding and, of estimators that keep all their rows, the objective: shares
    and labels of a stream are those of its beginning. The keys are

    - ``"limit"`` and ``"rounding"``: the solver stopped before ``tol`` was reached, or its outputs
      and its J are not those of the coefficients that it returns (the model has the latter, and
      ``termination_condition_`` is ``"stalled"`` where J is off by more than 1 %); the warning is a
      `sklearn.exceptions.ConvergenceWarning`, which holds the other findings, too;
    - ``"objective"``: a constant output has a lower objective; a ``termination_condition_`` that
      would be ``"converged"`` or ``"completed"`` is then ``"failed"``;
    - ``"share"``: a class is never predicted on the unlabeled rows, although it has labels, or the
      odds of its share differ by more than a factor of three from those of the share that was asked
      for (three rows of it, at least, have to be expected);
    - ``"labels"``: the machine contradicts more of its own labels than the supervised one does, by
      more than one label and 2 %. That is an SVM with the same kernel and C; with more than 500
      labels it is a constant;
    - ``"probability"``: of `S3VC`, the most probable class is another than that of `predict` on
      more than a fifth of the rows;
    - ``"kernel"``: all kernel values between different rows are almost equal, to k(x, x) or to 0.
    """


def given(**findings):
    """Return the findings by name, without those that are None."""
    return {name: text for name, text in findings.items() if text is not None}


def warn(name, findings, stacklevel):
    """Issue one warning that holds all findings; a `ConvergenceWarning` where a limit was met."""
    if findings:
        category = ConvergenceWarning if {"limit", "rounding"} & findings.keys() else FitWarning
        text = f"{name} {'. It '.join(findings.values())}"
        warnings.warn(text, category, stacklevel=stacklevel + 1)


def warn_of_time(estimator, n_rows, stacklevel):
    """Warn before a fit that takes more than about a minute."""
    largest = getattr(estimator, "_largest_n", np.inf)  # of a subclass elsewhere
    if n_rows > largest:
        warnings.warn(
            f"{type(estimator).__name__} was made for up to {largest:,} rows, which take about a "
            f"minute; with {n_rows:,} rows the fit may take much longer. verbose=1 shows progress",
            FitWarning,
            stacklevel=stacklevel + 1,
        )


def spared(n_labeled):
    """Return how many more labels than the supervised machine another one may get wrong."""
    return max(1.0, _SPARED * n_labeled)


def share_finding(codes, weight, found, classes, asked=None):
    """Compare the classes of the unlabeled rows with the shares that were to be expected.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Class index, −1 where unlabeled.
    weight : ndarray of shape (n,)
    found : ndarray of int, shape (n,)
        Class that the machine gives each row.
    classes : ndarray of shape (n_classes,)
    asked : ndarray of shape (n_classes,), default=None
        Shares that the machine was to give the unlabeled rows; without them no
        class of the labels may be missing.

    Returns
    -------
    str or None
    """
    U, L = codes < 0, codes >= 0
    s, n_classes = weight[U], classes.size
    if not s.sum() > 0:
        return None
    rows = s.sum() ** 2 / np.sum(s**2)  # so many of equal weight have the same error
    given = np.minimum(np.bincount(found[U], s, n_classes) / s.sum(), 1.0)
    own = np.bincount(codes[L], weight[L], n_classes) / weight[L].sum()
    expected = own if asked is None else asked
    # A rare class may be missing by chance.
    enough = rows * np.minimum(expected, 1 - expected) >= FEWEST
    with np.errstate(divide="ignore"):
        odds = np.log(given / (1 - given)) - np.log(expected / (1 - expected))
    # Without a share that was asked for, labels may well have been drawn class by class.
    wrong = enough & (given == 0 if asked is None else np.abs(odds) > np.log(ODDS))
    if not wrong.any():
        return None
    k = int(np.argmin(np.where(wrong, odds, np.inf)))  # the class that is starved most
    whose = "of the labels are of it" if asked is None else "were asked for"
    if given[k] == 0:
        return f"never predicts class {classes[k]} on unlabeled rows; {expected[k]:.1%} {whose}"
    return (
        f"predicts class {classes[k]} on {given[k]:.1%} of the unlabeled rows; "
        f"{expected[k]:.1%} {whose}"
    )


def label_finding(codes, found, supervised):
    """Count the labels that a machine contradicts, beyond those that the supervised one does.

    Parameters
    ----------
    codes, found
        As in `share_finding`.
    supervised : callable
        Returns the number of labels that the supervised machine contradicts. Called only where it
        matters.

    Returns
    -------
    str or None
    """
    labeled = codes >= 0
    n = int(labeled.sum())
    wrong = int(np.sum(found[labeled] != codes[labeled]))
    if wrong <= spared(n) or wrong - (least := supervised()) <= spared(n):
        return None
    return f"contradicts {wrong} of its {n} labels, the supervised machine {least}"


def constant_objective(problem, t, weight):
    """Return the least J of constant outputs that meet the balance constraint.

    Parameters
    ----------
    problem : Problem
    t : ndarray of shape (n,)
        Labels −1, +1, or 0 for unlabeled.
    weight : ndarray of shape (n,)
        Weights of the losses.

    Returns
    -------
    float
        Infinity where no constant is feasible. Of convex problems the outputs −1, 0 and +1 are
        compared, of others, where one of these may be a useless minimum, 0 alone.
    """
    # Outputs that the balance allows: 0, or the mean asked for; margins where only labels count.
    levels = [2 * problem.ratio - 1 if problem.balance == "mean" else 0.0]
    if problem.balance == "share" and np.any(t == 0):
        levels = []
    elif problem.unlabeled_loss is None or problem.C_star == 0 or np.all(t != 0):
        levels = [-1.0, 0.0, 1.0] if problem.balance == "none" else levels
    if problem.bias == "none":
        levels = [level for level in levels if level == 0]
    f = np.array(levels)
    # Constant outputs have three losses: of both labels, and of the unlabeled rows.
    masses = np.bincount(t.astype(np.intp) + 1, weight, 3)  # of −1, of the unlabeled rows, of +1
    values = problem.C * masses[::2] @ problem.labeled_loss.value(np.array([[-1.0], [1.0]]), f)
    if problem.unlabeled_loss is not None:
        values += problem.C_star * masses[1] * problem.unlabeled_loss.value(f)
    if problem.bias == "regularized":
        values += 0.5 * f**2
    return values.min(initial=np.inf)


def parted(problem, fit, f, rows, t, weight):
    """Return whether the outputs of a `BinaryFit` differ from those of its coefficients.

    Parameters
    ----------
    problem : Problem
    fit : BinaryFit
    f : ndarray of shape (m,)
        Outputs of its coefficients on some rows.
    rows : ndarray of int, shape (m,)
        These rows.
    t, weight : ndarrays of shape (n,)
        As in `constant_objective`.

    Returns
    -------
    bool
        True where J would be another, where rows change sides, or where the mean output is not the
        one that was asked for.
    """
    g, U = fit.outputs[rows], np.flatnonzero(t == 0)
    # The data terms of the rows that are looked at, scaled to all rows.
    terms = [sum(problem.data_terms(o, t[rows], weight[rows])) for o in (f, g)]
    unlike = abs(terms[0] - terms[1]) * t.size > _PARTED * abs(fit.objective) * rows.size
    unlike |= np.any(((f > 0) != (g > 0)) & (np.abs(f) > _TINY * np.abs(f).max()))
    if fit.coef is not None and problem.balance in ("none", "mean"):  # others charge for labels
        norm2 = fit.coef @ fit.coef / problem.kernel.sigma_f**2
        J = problem.value(fit.outputs, t, norm2, fit.intercept, weight)
        unlike |= abs(J - fit.objective) > _PARTED * abs(fit.objective)
    if problem.balance == "mean" and U.size:
        unlike |= abs(problem.balance_residual(fit.outputs, t, weight)) > _PARTED
    return bool(unlike)


def recounted(problem, fit, f, t, weight):
    """Return the `BinaryFit` with the outputs f of its coefficients, and with J at these.

    Parameters
    ----------
    problem, fit, t, weight
        As in `parted`.
    f : ndarray of shape (n,)

    Returns
    -------
    BinaryFit
        Where the mean output is bound, the offset meets it. The status is ``"stalled"`` where J is
        another one.
    """
    U, b, J = np.flatnonzero(t == 0), fit.intercept, fit.objective
    norm2 = (
        fit.dual @ (f - b) if fit.coef is None else fit.coef @ fit.coef / problem.kernel.sigma_f**2
    )
    if problem.balance == "mean" and U.size:
        shift = 2 * problem.ratio - 1 - weight[U] @ f[U] / weight[U].sum()
        f, b = f + shift, b + shift
    if problem.balance != "share":  # which binds labels that outputs are charged for
        J = problem.value(f, t, norm2, b, weight)
    status, extra = fit.status, fit.extra
    if abs(J - fit.objective) > _WRONG * max(abs(J), abs(fit.objective)):
        status = status if status in ("max_iter", "stopped") else "stalled"
    if extra and "gap_" in extra:
        extra = {**extra, "gap_": max(0.0, extra["gap_"] + J - fit.objective)}
    f = np.where(np.isnan(fit.outputs), np.nan, f)
    return fit._replace(
        outputs=f, intercept=float(b), objective=float(J), status=status, extra=extra
    )


def kernel_finding(kernel, X, reach):
    """Say whether the values of a kernel between the rows of X are almost all equal.

    Parameters
    ----------
    kernel : Kernel
    X : ndarray or CSR matrix of shape (n, d)
    reach : float
        C times the total weight: what differs by less than its inverse cannot separate rows.

    Returns
    -------
    str or None
    """
    if kernel.name == "linear" or X.shape[0] < 3:
        return None  # of a linear machine an offset takes up what is constant
    index = spread(X.shape[0], _PROBED)
    K = X[np.ix_(index, index)] if kernel.name == "precomputed" else kernel.gram(X[index])
    own, between = np.diagonal(K), K[~np.eye(index.size, dtype=bool)]
    largest = own.max()
    apart = 0.5 * np.max(own[:, None] + own - 2 * K)  # half a squared distance
    radial = kernel.name in ("rbf", "laplacian")
    if apart <= 0:
        return "sees no difference between rows: all kernel values are equal"
    if apart < _ALIKE * largest and reach * apart < 1:
        if not radial:
            return "sees almost no difference between rows: all kernel values are almost equal"
        return (
            "sees almost no difference between rows: all kernel values are at least "
            f"{between.min() / largest:.6f} of k(x, x). gamma={kernel.gamma:.3g} is too small for "
            "them; scale the columns of X, or take gamma='variance', which no offset of a column "
            "changes"
        )
    if radial and between.max() < _ALIKE * largest:
        return (
            "sees no similarity between rows: all kernel values are at most "
            f"{between.max() / largest:.1e} of k(x, x). gamma={kernel.gamma:.3g} is too large for "
            "them; take a smaller one"
        )
    return None
