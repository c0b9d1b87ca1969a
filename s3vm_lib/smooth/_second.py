"""What the unlabeled rows alone say of the labels, and the next separator where that is wrong.

At a stationary point w = −Σ_i a_i φ̃_i, with the slopes a of the losses and centered features φ̃. The
part of the unlabeled rows, w_U = −Σ_U a_j φ̃_j, knows the labels only through the side of the gap on
which it lies. Rows in a gap that runs across the classes get half of the labels wrong; the labeled
rows are then held on their sides by other directions of a space that has enough of them, and
neither J nor the training error shows it.
"""

import numpy as np

DOUBT = 0.2  # share of the labels that must be wrong before another separator is looked for
SIGN = 1.5  # standard errors by which that one must be better


class Without:
    """Coordinates in which one direction of w has no influence on the outputs.

    Parameters
    ----------
    coordinates : Features
    direction : ndarray of shape (d,)
        Not zero.
    """

    def __init__(self, coordinates, direction):
        self.coordinates = coordinates
        self.direction = direction / np.linalg.norm(direction)
        self.dimension, self.unit = coordinates.dimension, coordinates.unit
        if hasattr(coordinates, "most_rows"):
            self.most_rows = coordinates.most_rows

    def arrays(self):
        """Those of the coordinates, with rows orthogonal to the direction; None where they are."""
        found = self.coordinates.arrays()
        if found is None:
            return None
        Z, mean = found
        Z = Z - np.outer(Z @ self.direction, self.direction)
        return Z, self._rest(mean) if mean.size else mean

    def _rest(self, w):
        return w - (self.direction @ w) * self.direction

    def outputs(self, w):
        """Outputs f, shape (n,), without the offset."""
        return self.coordinates.outputs(self._rest(w))

    def squared_norm(self, w, f):
        """‖w‖²."""
        return w @ w

    def gradient(self, a, w, lam):
        """Gradient of the objective, with the derivatives ``a`` of the losses, shape (n,)."""
        return self._rest(self.coordinates.gradient(a, 0.0, 0.0)) + 2.0 * lam * w

    def applied(self, a):
        """K̃a with the Gram matrix K̃ of these coordinates."""
        return self.outputs(self.coordinates.gradient(a, 0.0, 0.0))

    def rows(self, index):
        """The same coordinates on some rows only."""
        return Without(self.coordinates.rows(index), self.direction)


def contradicted(coordinates, solution, t, sample_weight, problem):
    """Weight of the labeled rows that the part of the unlabeled rows puts into the wrong class.

    Parameters
    ----------
    coordinates : Features, RawCoefficients, RawLinearCoefficients or Without
    solution : Solution
    t : ndarray of shape (n,)
        −1, +1, and 0 for unlabeled rows.
    sample_weight : ndarray of shape (n,)
    problem : Problem

    Returns
    -------
    wrong : float
        A row of output 0 is wrong. 0 where unlabeled rows have no influence.
    total : float
        Weight of all labeled rows.
    """
    labeled = t != 0
    weight = sample_weight[labeled]
    f, a = solution.outputs, np.zeros(t.size)
    a[~labeled] = sample_weight[~labeled] * problem.unlabeled_loss.derivative(f[~labeled])
    if not (problem.C_star > 0 and a.any()):
        return 0.0, float(weight.sum())
    outputs = solution.b - problem.C_star * coordinates.applied(a)[labeled]
    return float(weight[outputs * t[labeled] <= 0].sum()), float(weight.sum())


def reconsidered(first, coordinates, t, sample_weight, problem, solve):
    """The separator, or the next one where it contradicts the labels and that one does not.

    The next one is what Algorithm 1 finds where the direction of the first has no influence; from
    there one more descent, in all directions, ends in a stationary point of J.

    Parameters
    ----------
    first : Solution
    coordinates : Features
    t, sample_weight, problem
        As in `contradicted`.
    solve : callable
        Takes coordinates and a start, see `solve_quasi_newton`; returns a `Solution`.

    Returns
    -------
    Solution
        With the stages of all that was tried. The first one, with the status ``"stopped"``, where
        the search for the next one is stopped: half of an annealing says nothing.
    """
    wrong, total = contradicted(coordinates, first, t, sample_weight, problem)
    if wrong < DOUBT * total or not wrong > 0 or not first.w.any():
        return first
    rest = Without(coordinates, first.w)
    other = solve(rest, None)
    if other.status == "stopped":
        return _after(first, other, taken=first._replace(status="stopped"))
    wrong_too = contradicted(rest, other, t, sample_weight, problem)[0]
    if wrong - wrong_too < SIGN * np.sqrt(wrong + wrong_too):
        return _after(first, other, taken=first)
    second = solve(coordinates, (other.w, other.b, problem.C_star))
    return _after(first, other, second, taken=second)


def _after(*tried, taken):
    """The solution ``taken``, with the stages of all that was ``tried``."""
    return taken._replace(
        n_iter=sum(one.n_iter for one in tried),
        history=sum((one.history for one in tried), ()),
    )
