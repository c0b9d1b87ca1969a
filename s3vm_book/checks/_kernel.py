"""Is this the Gram matrix?"""

import numpy as np

from s3vm_book.checks._report import Report, Suspect, accuse, finite, where
from s3vm_lib.kernels import squared_norms


def check_kernel(K, X, kernel, Z=None, *, tol=1e-6):
    """Is this the Gram matrix of these rows, and if not, of which kernel is it?

    Parameters
    ----------
    K : array-like of shape (n, n), or (n, m) with Z
        Values k(x_i, x_j), or k(x_i, z_j).
    X : array-like of shape (n, d)
        Rows.
    kernel : Kernel
        What K should be the values of; not ``precomputed``.
    Z : array-like of shape (m, d), default=None
        Other rows; None for X itself.
    tol : float, default=1e-6
        Difference that counts as equal, relative to the largest value.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        For X or Z that are not tables of finite numbers, and a precomputed kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_book.checks import check_kernel
    >>> from s3vm_lib.kernels import Kernel
    >>> X = np.array([[0.0, 1.0], [2.0, 0.5], [1.0, 1.0]])
    >>> distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    >>> check_kernel(np.exp(-0.5 * distances), X, Kernel("rbf", 0.5)).mistake
    'distance not squared'
    """
    if kernel.name == "precomputed":
        raise ValueError("kernel must compute values from rows, got 'precomputed'")
    X = finite("X", X)
    Z = X if Z is None else finite("Z", Z)
    if X.ndim != 2 or Z.ndim != 2 or X.shape[1] != Z.shape[1]:
        raise ValueError(f"X and Z must be tables of equal width, got {X.shape} and {Z.shape}")
    K = np.asarray(K)
    right = kernel.gram(X, Z)
    if K.shape != right.shape:
        hint = ""
        if K.shape == right.T.shape:
            hint = " It is transposed."
        elif K.shape == (X.shape[1], X.shape[1]):
            hint = " X.T @ X has one entry for each pair of columns, X @ X.T for each pair of rows."
        return Report("shape", f"K must have the shape {right.shape}, got {K.shape}.{hint}")
    if not np.all(np.isfinite(K)):
        return Report("not finite", f"K is NaN or infinite in {where(~np.isfinite(K))}.")
    K = K.astype(float)
    size = max(np.abs(right).max(), 1e-300)

    def off(values):
        return float(np.abs(K - values).max() / size)

    numbers = {"error": off(right)}
    if numbers["error"] <= tol:
        return Report(None, f"These are the values of the {kernel.name} kernel.", numbers)
    report = accuse(_suspects(K, X, Z, kernel, off), tol, numbers)
    if report is not None:
        return report
    bad = np.abs(K - right) > tol * size
    i, j = np.unravel_index(np.argmax(np.abs(K - right)), K.shape)
    message = f"{int(bad.sum())} of {K.size} values differ; K[{i}, {j}] = {K[i, j]:.6g} should be"
    message += f" {right[i, j]:.6g}."
    if not bad[~np.eye(*K.shape, dtype=bool)].any():
        return Report("diagonal", message + " Only the diagonal is wrong.", numbers)
    return Report("kernel", message, numbers)


def _suspects(K, X, Z, kernel, off):
    """Other matrices that K may be."""
    if K.shape[0] == K.shape[1]:
        message = "it is transposed: the rows of K belong to X, the columns to Z."
        yield Suspect("transposed", message, off(kernel.gram(X, Z).T))
    gamma = kernel.gamma
    if kernel.name in ("rbf", "laplacian"):
        rbf = kernel.name == "rbf"
        distance = "‖x − z‖" if rbf else "‖x − z‖₁"
        power = "‖x − z‖²" if rbf else distance
        square = np.maximum(squared_norms(X)[:, None] + squared_norms(Z)[None] - 2 * X @ Z.T, 0.0)
        city = np.abs(X[:, None, :] - Z[None]).sum(axis=2)
        if not rbf:
            square, city = city, square
        variance = kernel.sigma_f**2
        with np.errstate(over="ignore"):
            for factor, words in (
                (2.0, "2γ"), (0.5, "γ/2"), (1 / gamma**2, "1/γ, γ taken for σ²"),
                (0.5 / gamma**2, "1/(2γ), γ taken for σ²"),
                (0.5 / gamma**3, "1/(2γ²), γ taken for σ"),
                (1 / gamma**3, "1/γ², γ taken for σ"), (gamma, "γ²"), (1 / gamma, "1, without γ"),
            ):  # fmt: skip
                if abs(factor - 1) > 1e-9:
                    message = f"the width is {words} in place of γ: k = exp(−γ{power})."
                    yield Suspect(
                        "kernel width", message, off(variance * np.exp(-factor * gamma * square))
                    )
            kind = "distance not squared" if rbf else "root of the distance"
            message = f"it is exp(−γ{'' if rbf else '√'}{distance}), not exp(−γ{power})."
            yield Suspect(kind, message, off(variance * np.exp(-gamma * np.sqrt(square))))
            kind = "squared twice" if rbf else "distance squared"
            message = f"it is exp(−γ{distance}{'⁴' if rbf else '²'}), not exp(−γ{power})."
            yield Suspect(kind, message, off(variance * np.exp(-gamma * square**2)))
            message = "the exponent is positive: minus is missing."
            yield Suspect("sign of the exponent", message, off(variance * np.exp(gamma * square)))
            message = (
                "the distance is that of the other norm: Euclidean, squared, for rbf, and the sum"
            )
            message += " of absolute values for laplacian."
            yield Suspect("other norm", message, off(variance * np.exp(-gamma * city)))
            message = f"these are the distances {power}, not yet kernel values."
            yield Suspect("distances", message, off(square))
            message = "the kernel is multiplied by σ_f², not by σ_f, and not left without it."
            for value in (1.0, kernel.sigma_f):
                yield Suspect("output variance", message, off(value * np.exp(-gamma * square)))
    inner = X @ Z.T
    if kernel.name == "poly":
        degree, coef0 = kernel.degree, kernel.coef0
        variance = kernel.sigma_f**2
        for values, words in (
            ((gamma * inner) ** degree, "coef0 is missing"),
            ((inner + coef0) ** degree, "γ is missing"),
            ((gamma * (inner + coef0)) ** degree, "γ multiplies coef0 too"),
            (gamma * inner + coef0, "the power is missing"),
            ((gamma * inner) ** degree + coef0, "coef0 was added after the power"),
            ((gamma * inner + coef0) ** (degree - 1), "the degree is one too low"),
            ((gamma * inner + coef0) ** (degree + 1), "the degree is one too high"),
        ):
            yield Suspect(
                "polynomial", f"{words}: k = (γ⟨x, z⟩ + coef0)^degree.", off(variance * values)
            )
    yield Suspect("linear kernel", "these are the inner products ⟨x, z⟩.", off(inner))
    yield Suspect("offset in the kernel", "1 was added to all values.", off(kernel.gram(X, Z) + 1))
    if K.shape[0] == K.shape[1]:
        message = "the diagonal is 0: the loop left out i = j."
        yield Suspect("diagonal", message, off(kernel.gram(X, Z) * (1 - np.eye(len(K)))))
        signs = np.sign(K * kernel.gram(X, Z))
        message = "labels are multiplied in: K[i, j] = t_i t_j k(x_i, x_j)."
        rank_one = np.abs(signs - np.outer(signs[0], signs[0])).max() == 0 and (signs < 0).any()
        yield Suspect(
            "labels in K", message, off(signs * kernel.gram(X, Z)) if rank_one else np.inf
        )
        upper = np.triu(kernel.gram(X, Z))
        yield Suspect("half filled", "only the entries above the diagonal are filled.", off(upper))
        yield Suspect(
            "half filled", "only the entries below the diagonal are filled.", off(upper.T)
        )
    scale = X.std(axis=0)
    if X is Z and np.all(scale > 0):
        scaled = (X - X.mean(axis=0)) / scale
        message = (
            "these are the values for standardized columns: here the rows are used as they are."
        )
        yield Suspect("standardized rows", message, off(kernel.gram(scaled)))
        message = "it is centered: rows and columns have the mean 0."
        H = np.eye(len(K)) - 1 / len(K)
        yield Suspect("centered", message, off(H @ kernel.gram(X) @ H))
