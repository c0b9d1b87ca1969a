"""Penalties of the papers in this library's terms, and what fits into memory."""

COARSE = 100  # rows of the space that makes conjugate gradients fast
# Up to this many rows "auto" factorizes: slower than gradients at best, but never stuck.
_DIRECT = 2500


def melacci_penalties(gamma_A, gamma_I, n_edges):
    """C and C_graph for Σ_L max(0, 1 − t f)² + γ_A ‖f‖² + γ_I fᵀMf.

    Parameters
    ----------
    gamma_A, gamma_I : float
        γ_A > 0 and γ_I ≥ 0 of Melacci and Belkin (2011), who use sums and the squared hinge without
        a factor ½.
    n_edges : int
        |E|.

    Returns
    -------
    C, C_graph : float
        1/γ_A and |E| γ_I/(2γ_A): J is their objective divided by 2γ_A.
    """
    return 1 / gamma_A, n_edges * gamma_I / (2 * gamma_A)


def belkin_penalties(gamma_A, gamma_I, n_edges, n_labeled, n):
    """C and C_graph for (1/l) Σ_L ℓ + γ_A ‖f‖² + (γ_I/n²) fᵀMf.

    Parameters
    ----------
    gamma_A, gamma_I : float
        γ_A > 0 and γ_I ≥ 0 of Belkin, Niyogi and Sindhwani (2006), equation (4) with their choice
        of the graph term.
    n_edges : int
        |E|.
    n_labeled, n : int
        l and the number of all rows.

    Returns
    -------
    C, C_graph : float
        1/(2γ_A l) and |E| γ_I/(2γ_A n²): with the hinge, J is their objective divided by 2γ_A.
    """
    return 1 / (2 * gamma_A * n_labeled), n_edges * gamma_I / (2 * gamma_A * n**2)


def choose_blocks(n, megabytes, rank):
    """What of a factor in blocks fits into memory where the factor itself does not.

    Parameters
    ----------
    n : int
        Rows.
    megabytes : float
        Budget in MiB.
    rank : int or None
        Largest rank asked for; None means 500.

    Returns
    -------
    rank : int
    columns : int
        Columns of the factor that are there at once with their products, in half of the budget; 0
        where nothing fits.
    needed : float
        The least budget of which anything fits.
    """
    from s3vm_lib.smooth import megabytes_needed  # a slow import, and rarely needed

    rank = min(n, 500 if rank is None else rank)
    unit = 3 * 8.0 * n / 2**20  # one column, its product, and what the product needs
    least = megabytes_needed(n, rank)
    columns = int((megabytes / 2) / unit) if least <= megabytes / 2 else 0
    return rank, min(columns, rank), 2 * max(least, unit)


def choose_rank(n, n_labeled, megabytes, rank, loss, solver, precomputed=False):
    """What fits into memory: the solver, and the number of columns of a low-rank kernel.

    Parameters
    ----------
    n, n_labeled : int
        Rows, and labeled rows.
    megabytes : float
        Budget in MiB.
    rank : int or None
        Largest rank asked for; None leaves the choice to the budget.
    loss : {"squared_hinge", "hinge"}
    solver : {"auto", "newton", "pcg"}
    precomputed : bool, default=False
        Whether the Gram matrix is there already.

    Returns
    -------
    solver : {"newton", "pcg"} or None
        None where nothing fits.
    rank : int or None
        None for the full kernel; otherwise the solver is ``"newton"``.
    needed : float
        MiB of what was chosen, or of the smallest choice where nothing fits.
    """
    unit = 8.0 * n / 2**20  # one column
    if rank is None:
        if solver == "auto":
            solver = "newton" if loss == "hinge" or n <= _DIRECT else "pcg"
        # The direct method holds K, MK and its factors; conjugate gradients hold K and vectors.
        vectors = 30 if solver == "newton" else 30 + 3 * min(n, COARSE)
        needed = unit * (n * (3 if solver == "newton" else 1 - precomputed) + vectors)
        if needed <= megabytes:
            return solver, None, needed
    # The factor G, MG and one copy of the size of G.
    most = min(n, 1000 if rank is None else rank)
    fits = int(megabytes / (3 * unit))
    if rank is not None and fits < most:
        return None, None, 3 * unit * most
    least = min(n, max(50, 2 * min(n_labeled, 500)))
    if fits < min(least, most):
        return None, None, 3 * unit * min(least, most)
    return "newton", min(most, fits), 3 * unit * min(most, fits)
