"""The family of problems that every solver of the book minimizes, and how to judge a solution.

    J(f, b) = ½‖f‖² + C Σ_{i∈L} s_i ℓ(t_i, f(x_i) + b) + C* Σ_{j∈U} s_j u(f(x_j) + b)

over labeled rows L and unlabeled rows U with weights s, subject to a balance constraint on the
outputs over U where one is used. Labels are ``t`` ∈ {−1, +1}, and 0 for unlabeled rows. Methods on
a graph of the rows have (C_graph / |E|) Σ_E μ_ij |f(x_i) − f(x_j)|^p in place of the unlabeled
term. Methods differ in losses, in how they treat b and in the balance they ask for;
`evaluate` compares any of their solutions on one and the same problem.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from s3vm_lib.graphs import CompleteGraph, Graph, Laplacian
from s3vm_lib.kernels import Kernel
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.utils.labels import mark_missing, split_labels

BIASES = ("free", "regularized", "none")
BALANCES = ("none", "mean", "share", "counts")


@dataclass(frozen=True)
class Problem:
    """What is minimized.

    Parameters
    ----------
    labeled_loss : LabeledLoss, default=LabeledLoss("hinge")
        ℓ(t, f), convex in f.
    unlabeled_loss : UnlabeledLoss or None, default=None
        u(f); None leaves the unlabeled rows out.
    C : float, default=1.0
        Weight of the labeled losses.
    C_star : float, default=0.0
        Weight of the unlabeled losses.
    kernel : Kernel, default=Kernel("linear")
        Kernel of the space in which ‖f‖ is measured.
    bias : {"free", "regularized", "none"}, default="free"
        Whether b is unpenalized, enters as ½b², or is 0.
    balance : {"none", "mean", "share", "counts"}, default="none"
        Constraint on the unlabeled rows: none; the mean output equals 2r − 1; the share of
        positive outputs differs from r by less than ``balance_tol``; round(r u) rows are labeled
        positive. The last binds the labels that a method assigns: the signs of the outputs may
        contradict them, and `balance_residual` measures how far.
    ratio : float or None, default=None
        Share r of positives; needed with every balance but ``"none"``.
    balance_tol : float, default=0.0
        Tolerance ε of ``balance="share"``.
    C_graph : float, default=0.0
        Weight of the graph term: the mean of μ_ij |f_i − f_j|^p over the edges is multiplied by it.
    graph : Graph, CompleteGraph, Laplacian or None, default=None
        Graph of the rows of positive weight, in their order. With a `Laplacian` the
        term is (C_graph / |E|) fᵀL^q f.
    power : float, default=2.0
        Exponent p ≥ 1 of the graph term; 2 with a `Laplacian`.

    Raises
    ------
    ValueError
        For a value out of range, naming the parameter.
    """

    labeled_loss: LabeledLoss = LabeledLoss("hinge")
    unlabeled_loss: UnlabeledLoss | None = None
    C: float = 1.0
    C_star: float = 0.0
    kernel: Kernel = Kernel("linear")
    bias: str = "free"
    balance: str = "none"
    ratio: float | None = None
    balance_tol: float = 0.0
    C_graph: float = 0.0
    graph: Graph | CompleteGraph | Laplacian | None = None
    power: float = 2.0

    def __post_init__(self):
        if not self.C > 0:
            raise ValueError(f"C must be positive, got {self.C}")
        if not self.C_star >= 0:
            raise ValueError(f"C_star must be non-negative, got {self.C_star}")
        if not self.C_graph >= 0:
            raise ValueError(f"C_graph must be non-negative, got {self.C_graph}")
        if not self.power >= 1:
            raise ValueError(f"power must be at least 1, got {self.power}")
        if isinstance(self.graph, Laplacian) and self.power != 2:
            raise ValueError(f"power must be 2 with a Laplacian, got {self.power}")
        if self.bias not in BIASES:
            raise ValueError(f"bias must be one of {BIASES}, got {self.bias!r}")
        if self.balance not in BALANCES:
            raise ValueError(f"balance must be one of {BALANCES}, got {self.balance!r}")
        if self.balance != "none" and (self.ratio is None or not 0 <= self.ratio <= 1):
            raise ValueError(
                f"ratio must lie in [0, 1] with balance={self.balance!r}, got {self.ratio}"
            )

    @staticmethod
    def penalties(lam, lam_star, n_labeled, n_unlabeled):
        """Return C and C* for an objective written with means, (1/l)Σℓ + (λ′/u)Σu + λ‖f‖².

        Parameters
        ----------
        lam, lam_star : float
            λ > 0 and λ′ ≥ 0 (Gieseke et al., eq. (2)).
        n_labeled, n_unlabeled : int
            l and u, or the total weights of the two parts.

        Returns
        -------
        C, C_star : float
            1/(2λl) and λ′/(2λu): J is the objective with means divided by 2λ.
        """
        return 1 / (2 * lam * n_labeled), lam_star / (2 * lam * n_unlabeled)

    def data_terms(self, f, t, sample_weight=None):
        """Return C Σ_L s ℓ and C* Σ_U s u at the outputs f.

        Parameters
        ----------
        f : ndarray of shape (n,)
            Outputs f(x_i) + b.
        t : ndarray of shape (n,)
            Labels −1, +1, or 0 for unlabeled.
        sample_weight : ndarray of shape (n,), default=None

        Returns
        -------
        labeled, unlabeled : float
        """
        s = np.ones(len(t)) if sample_weight is None else sample_weight
        L, U = t != 0, t == 0
        labeled = self.C * float(s[L] @ self.labeled_loss.value(t[L], f[L]))
        if self.unlabeled_loss is None or not U.any():
            return labeled, 0.0
        return labeled, self.C_star * float(s[U] @ self.unlabeled_loss.value(f[U]))

    def scaled(self, t, sample_weight):
        """Return s̄, λ and λ′ of F = J / (C Σ_L s) = Σ_L s̄ ℓ + λ′ Σ_U s̄ u + λ‖f‖².

        The form with means, in which tolerances have a meaning of their own (Gieseke et al.,
        eq. (4)).

        Parameters
        ----------
        t : ndarray of shape (n,)
            Labels −1, +1, or 0 for unlabeled; at least one labeled row.
        sample_weight : ndarray of shape (n,)
            Weights s; their sum over the labeled rows is positive.

        Returns
        -------
        weight : ndarray of shape (n,)
            s̄, which sums to one over the labeled and to one over the unlabeled rows.
        lam, strength : float
            λ and λ′; λ′ = 0 without an unlabeled loss.
        """
        labeled = t != 0
        mass, mass_u = sample_weight[labeled].sum(), sample_weight[~labeled].sum()
        # In means the tolerances of a solver mean the same for any number of rows.
        weight = sample_weight / np.where(labeled, mass, max(mass_u, 1e-300))
        strength = 0.0
        if self.unlabeled_loss is not None:
            strength = float(self.C_star * mass_u / (self.C * mass))
        return weight, 0.5 / (self.C * mass), strength

    @property
    def losses(self):
        """The losses ℓ and u; a u whose factor is zero where there is none."""
        return self.labeled_loss, self.unlabeled_loss or UnlabeledLoss("gaussian")

    def graph_term(self, f, b=0.0):
        """Return (C_graph / |E|) Σ_E μ_ij |f_i − f_j|^p, or (C_graph / |E|) fᵀL^q f.

        Parameters
        ----------
        f : ndarray of shape (n,)
            Outputs f(x_i) + b.
        b : float, default=0.0
            Offset. The term measures f without it, which matters for a normalized Laplacian only:
            the offset stays free.

        Returns
        -------
        float
            0.0 without a graph, and for a graph without edges.
        """
        scale = self._graph_scale()
        if not getattr(
            self.graph, "flat", True
        ):  # where b matters not, f without it has less digits
            f = f - b
        return scale * self.graph.energy(f, self.power) if scale else 0.0

    def _graph_scale(self):
        """Return C_graph / |E|."""
        if self.graph is None or self.C_graph == 0 or self.graph.n_edges == 0:
            return 0.0
        return self.C_graph / self.graph.n_edges

    def value(self, f, t, norm2, b=0.0, sample_weight=None):
        """Return J at the outputs f (offset included) of a function with squared norm ``norm2``."""
        # A norm that rounding made negative is none.
        penalty = 0.5 * max(norm2, 0.0) + (0.5 * b**2 if self.bias == "regularized" else 0.0)
        return penalty + sum(self.data_terms(f, t, sample_weight)) + self.graph_term(f, b)

    def output_gradient(self, f, t, sample_weight=None):
        """Return derivatives of the data terms with respect to the outputs, shape (n,).

        At a kink one subgradient is returned, see `s3vm_lib.losses`.
        """
        s = np.ones(len(t)) if sample_weight is None else sample_weight
        a = np.zeros(len(t))
        L, U = t != 0, t == 0
        a[L] = self.C * s[L] * self.labeled_loss.derivative(t[L], f[L])
        if self.unlabeled_loss is not None and U.any():
            a[U] = self.C_star * s[U] * self.unlabeled_loss.derivative(f[U])
        return a

    def value_and_gradient(self, K, c, b, t, sample_weight=None):
        """Return J and its gradient in the coefficients c of f = Σ_i c_i k(x_i, ·) and in b.

        Parameters
        ----------
        K : ndarray of shape (n, n)
            Gram matrix.
        c : ndarray of shape (n,)
        b : float
        t : ndarray of shape (n,)
        sample_weight : ndarray of shape (n,), default=None

        Returns
        -------
        value : float
        gradient_c : ndarray of shape (n,)
            K(a + c) with a the derivatives of the data and graph terms in the outputs.
        gradient_b : float
            Σ_i a_i, plus b where b is regularized; 0 where there is none.
        """
        Kc = K @ c
        f = Kc + b
        a = self.output_gradient(f, t, sample_weight)
        gradient_b = {"free": a.sum(), "regularized": a.sum() + b, "none": 0.0}[self.bias]
        scale = self._graph_scale()
        if scale:
            a += scale * self.graph.energy_gradient(Kc, self.power)
        return self.value(f, t, c @ Kc, b, sample_weight), K @ (a + c), float(gradient_b)

    def balance_residual(self, f, t, sample_weight=None):
        """Return by how much the outputs miss the balance constraint; 0 when they meet it.

        In units of the mean output, of the share, or of the number of positives. Rows of weight
        zero are not among them.
        """
        s = np.ones(len(t)) if sample_weight is None else sample_weight
        U = (t == 0) & (s > 0)
        if self.balance == "none" or not U.any():
            return 0.0
        s = s[U]
        if self.balance == "mean":
            return abs(float(s @ f[U] / s.sum()) - (2 * self.ratio - 1))
        if self.balance == "counts":
            return float(abs(np.sum(f[U] > 0) - round(self.ratio * U.sum())))
        share = float(s @ (f[U] > 0) / s.sum())
        return max(0.0, abs(share - self.ratio) - self.balance_tol)


def svm_dual(K, beta, t):
    """Return the dual value Σ t_i β_i − ½ βᵀKβ of the SVM with signed variables β_i = t_i α_i.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix.
    beta, t : ndarrays of shape (n,)
        Signed variables, and labels −1 and +1.

    Returns
    -------
    float
        A lower bound of the objective where beta is feasible.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.objective import svm_dual
    >>> svm_dual(np.eye(2), np.array([0.5, -0.5]), np.array([1, -1]))
    0.75
    """
    return float(t @ beta - 0.5 * beta @ (K @ beta))


def signed_labels(t, name="t", unlabeled=False):
    """Return labels as floats; refuse others, and say how to make them from classes 0 and 1.

    Parameters
    ----------
    t : array-like of shape (n,)
        Labels −1 and +1.
    name : str, default="t"
        Parameter that the error names.
    unlabeled : bool, default=False
        Whether 0 may stand for an unlabeled row.

    Returns
    -------
    ndarray of float, shape (n,)

    Raises
    ------
    ValueError
        For other labels, and for 0 and 1 without −1, which are classes and not labels. The
        classes 0 and 1 with −1 for unlabeled rows cannot be told from labels with 0 for them.
    """
    t = np.asarray(t)
    if t.ndim != 1 or t.dtype.kind not in "iufb":
        raise ValueError(f"{name} must be one-dimensional and numeric, got {t.dtype} {t.shape}")
    found = set(np.unique(t).tolist())
    if not found <= ({-1, 0, 1} if unlabeled else {-1, 1}) or found == {0, 1}:
        what = "−1 and +1, and 0 for unlabeled rows" if unlabeled else "−1 and +1"
        shown = ", ".join(f"{value:g}" for value in sorted(found)[:5])
        way = "np.where(y == -1, 0, 2 * y - 1)" if unlabeled else "2 * y - 1 of the labeled rows"
        raise ValueError(f"{name} must hold {what}, got {shown}; from classes 0 and 1: {way}")
    return t.astype(float)


def svm_infeasibility(beta, t, upper):
    """Measure how far β is from the dual constraints, as shares of the largest dual variable.

    Parameters
    ----------
    beta, t, upper
        As in `svm_duality_gap`.

    Returns
    -------
    box, total : float
        Largest violation of 0 ≤ t_i β_i ≤ upper_i, and of Σβ = 0, over ``max |β|``; 0 for β = 0.
    """
    alpha, size = t * beta, np.max(np.abs(beta), initial=0.0)
    if size == 0:
        return 0.0, 0.0
    box = max(np.max(-alpha, initial=0.0), np.max(alpha - upper, initial=0.0))
    return float(box / size), float(abs(np.sum(beta)) / size)


def svm_duality_gap(K, beta, b, t, upper):
    """Return the primal minus the dual value of an SVM, a bound on J minus its minimum.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Gram matrix of the labeled rows.
    beta : ndarray of shape (n,)
        Signed dual variables with 0 ≤ t_i β_i ≤ upper_i and Σβ = 0.
    b : float or None
        Offset; None for a machine without one, whose dual has no constraint on Σβ.
    t : ndarray of shape (n,)
        Labels −1 and +1.
    upper : ndarray of shape (n,)
        Weights C s_i of the hinge losses.

    Returns
    -------
    float
        Non-negative up to rounding; 0 exactly at a solution. Infinite where β violates a
        constraint by more than 1e-6 of its largest entry: the dual is −∞ there, and bounds nothing.

    Raises
    ------
    ValueError
        For labels other than −1 and +1.
    """
    t = signed_labels(t)
    box, total = svm_infeasibility(beta, t, upper)
    if max(box, 0.0 if b is None else total) > 1e-6:
        return np.inf
    f = K @ beta
    margin = t * (f + (0.0 if b is None else b))
    return float(beta @ f + upper @ np.maximum(0, 1 - margin) - t @ beta)


def svm_kkt_residual(K, beta, b, t, upper):
    """Return the largest violation of the KKT conditions of an SVM, in units of the margin.

    With ``alpha = t * beta`` and outputs ``f = K @ beta + b``: t f ≥ 1 is needed where α < upper,
    and t f ≤ 1 where α > 0; further 0 ≤ α ≤ upper, and Σβ = 0 unless b is None. What β violates
    counts with the largest K_ii, by which a unit of β moves an output. Parameters and errors as in
    `svm_duality_gap`.
    """
    t = signed_labels(t)
    alpha, margin = t * beta, t * (K @ beta + (0.0 if b is None else b))
    # Below the upper bound a margin of 1 is due at least, above the lower bound at most.
    short = np.where(alpha < upper, 1 - margin, 0.0)
    beyond = np.where(alpha > 0, margin - 1, 0.0)
    box = np.maximum(-alpha, alpha - upper)
    total = 0.0 if b is None else abs(np.sum(beta))
    reach = np.max(np.diagonal(K), initial=0.0)
    return float(
        max(
            short.max(initial=0.0),
            beyond.max(initial=0.0),
            reach * max(box.max(initial=0.0), total),
        )
    )


class Evaluation(NamedTuple):
    """A solution judged on a problem (see `evaluate`)."""

    objective: float  # J
    penalty: float  # ½‖f‖², with ½b² where the problem regularizes b
    labeled: float  # C Σ s ℓ
    unlabeled: float  # C* Σ s u
    balance_residual: float
    graph: float = 0.0  # (C_graph / |E|) Σ μ |f_i − f_j|^p


def evaluate(estimator, X, y, problem, sample_weight=None):
    """Evaluate the objective of a fitted two-class estimator on any `Problem`.

    Parameters
    ----------
    estimator : fitted estimator with ``dual_coef_``, ``coef_`` or ``squared_norm_``
        Its function f, offset and classes are used, its own losses and weights are not.
    X : {ndarray, CSR matrix} of shape (n, d)
        Rows that the estimator was fitted to; the n × n Gram matrix with a precomputed kernel.
    y : array-like of shape (n,)
        Labels; −1 marks unlabeled rows, and so do missing labels (None, NaN, pandas.NA).
    problem : Problem
        Its kernel must be the one that the estimator was fitted with, or ‖f‖ has no meaning. Of
        an estimator without ``problem_`` the name of the kernel is all that is compared.
    sample_weight : array-like of shape (n,), default=None

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        For an estimator of more than two classes, or with another kernel than the problem's, and
        for a label that is not among its classes.
    """
    check_is_fitted(estimator)
    if len(estimator.classes_) != 2:
        raise ValueError(f"estimator must have two classes, got {len(estimator.classes_)}")
    kernel = getattr(getattr(estimator, "problem_", None), "kernel", None)
    name = kernel.name if kernel else getattr(estimator, "kernel", "linear")
    if problem.kernel.name != name:
        raise ValueError(f"problem.kernel must be {name!r}, got {problem.kernel.name!r}")
    for parameter, value in kernel.parameters.items() if kernel else ():
        given = getattr(problem.kernel, parameter)
        if not math.isclose(given, value, rel_tol=1e-9):
            raise ValueError(
                f"problem.kernel must have {parameter}={value}, as in the fit, got {given}"
            )
    codes, _ = split_labels(np.asarray(mark_missing(y)), classes=estimator.classes_)
    t = np.select([codes < 0, codes == 0], [0.0, -1.0], 1.0)
    # ‖f‖² from what the estimator keeps: features, weights of columns, or coefficients.
    if hasattr(estimator, "squared_norm_"):
        norm2 = float(estimator.squared_norm_)
    elif hasattr(estimator, "coef_"):
        norm2 = float(np.sum(estimator.coef_**2)) / problem.kernel.sigma_f**2
    else:
        dual = estimator.dual_coef_[0]
        if name == "precomputed":
            K = np.asarray(X)[np.ix_(estimator.support_, estimator.support_)]
        else:
            K = problem.kernel.gram(estimator.support_vectors_)
        norm2 = float(dual @ K @ dual)
    f, b = estimator.decision_function(X), float(estimator.intercept_[0])
    s = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    labeled, unlabeled = problem.data_terms(f, t, s)
    penalty = 0.5 * norm2 + (0.5 * b**2 if problem.bias == "regularized" else 0.0)
    residual = problem.balance_residual(f, t, s)
    # The graph is that of the rows with positive weight.
    graph = problem.graph_term(f if s is None else f[s > 0], b)
    objective = penalty + labeled + unlabeled + graph
    return Evaluation(objective, penalty, labeled, unlabeled, residual, graph)
