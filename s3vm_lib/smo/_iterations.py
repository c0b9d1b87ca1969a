"""The compiled iterations of SMO: the choice of a pair and the step."""

from typing import NamedTuple

import numpy as np

from s3vm_lib.gram import compute_row, used_slot
from s3vm_lib.utils.jit import njit

BIG = 1e30  # stands for infinity: arithmetic on inf would make NaN
BLOCK = 512


class Costs(NamedTuple):
    """The convex piecewise-linear costs of (P): five arrays of shape (n,).

    The cost φ_i has the slope s1_i on [lo_i, mid_i] and s2_i ≥ s1_i on [mid_i, hi_i]; β_i stays in
    [lo_i, hi_i]. A row whose cost has one slope has mid_i = hi_i and s2_i = s1_i.
    """

    lo: np.ndarray
    mid: np.ndarray
    hi: np.ndarray
    s1: np.ndarray
    s2: np.ndarray

    def take(self, index):
        """Return the costs of the variables ``index``."""
        return Costs(*(part[index] for part in self))


# --- One iteration: two selections and a step -----------------------------------------------------


@njit
def slope_up(c, i, beta_i):
    """Return A_i: minus the slope of φ_i to the right of β_i."""
    if beta_i >= c.hi[i]:
        return -BIG
    return -c.s1[i] if beta_i < c.mid[i] else -c.s2[i]


@njit
def slope_down(c, i, beta_i):
    """Return B_i: minus the slope of φ_i to the left of β_i."""
    if beta_i <= c.lo[i]:
        return BIG
    return -c.s2[i] if beta_i > c.mid[i] else -c.s1[i]


@njit
def block_max(bits, m):
    """Return the largest of the first m non-negative floats, as the integer that encodes it.

    Non-negative floats are ordered like their bit patterns, and the compiler vectorizes an integer
    maximum but not a floating-point one.
    """
    top = bits[0]
    for j in range(1, m):
        if bits[j] > top:
            top = bits[j]
    return top


@njit
def first_equal(bits, top):
    """Return the first index whose value is top, among at most BLOCK; vectorized as `block_max`."""
    first = np.int32(BLOCK)
    for j in range(bits.size):
        first = min(first, np.int32(j) if bits[j] == top else np.int32(BLOCK))
    return first


@njit
def largest_difference(A, F):
    """Return the first index with the largest A − F, or −1 where nothing may rise."""
    best, value = -1, -BIG / 2
    for k in range(F.size):
        if A[k] - F[k] > value:
            best, value = k, A[k] - F[k]
    return best


@njit
def update_and_select_i(F, A, Ki, Kj, t, near, score, bits):
    """Add t (K_i − K_j) to F; return the first index of the largest A − F, −1 if F has NaN.

    Scores are what exceeds the value of the index ``near``, but for a rounding, so that even in
    the precision of the kernel they tell apart what is larger.
    """
    best, value = -1, A[near] - (F[near] + t * (Ki[near] - Kj[near]))
    value -= 1e-15 * abs(value) + 1e-30
    for start in range(0, F.size, BLOCK):
        m = min(BLOCK, F.size - start)
        Fb, Ab = F[start : start + m], A[start : start + m]
        Kib, Kjb = Ki[start : start + m], Kj[start : start + m]
        for j in range(m):
            g = Fb[j] + t * (Kib[j] - Kjb[j])
            Fb[j] = g
            gain = Ab[j] - g - value
            score[j] = gain if gain > 0 else 0.0
        highest = block_max(bits, m)
        if highest > 0:
            best = start + first_equal(bits[:m], highest)
            value = A[best] - F[best]
    return best


@njit
def select_j(F, B, Ki, diagonal, Kii, top, least, score, bits):
    """Return j with the largest (top + F − B)₊² / max(K_ii + K_jj − 2 K_ij, least), or −1.

    Gains are compared in the precision of the kernel; −1 stands for no positive one.
    """
    best, block = bits[0] * 0, -1
    for start in range(0, F.size, BLOCK):
        m = min(BLOCK, F.size - start)
        Fb, Bb = F[start : start + m], B[start : start + m]
        Kb, diagonal_b = Ki[start : start + m], diagonal[start : start + m]
        gain = score[start : start + m]
        for j in range(m):
            d = top + Fb[j] - Bb[j]
            gain[j] = d if d > 0 else 0.0
        for j in range(m):
            a = (diagonal_b[j] - Kb[j]) + (Kii - Kb[j])
            gain[j] = gain[j] * gain[j] / (a if a > least else least)
        highest = block_max(bits[start:], m)
        if highest > best:
            best, block = highest, start
    if block < 0:
        return -1
    return block + first_equal(bits[block : min(block + BLOCK, F.size)], best)


@njit
def least_difference(B, F):
    """Return min(B − F)."""
    least = B[0] - F[0]
    for k in range(1, F.size):
        difference = B[k] - F[k]
        if difference < least or difference != difference:  # NaN stays
            least = difference
    return least


@njit
def smo_iterations(cache, rows, c, diagonal, beta, F, A, B, score, bits, tau, tol, max_iter):
    """Run at most ``max_iter`` iterations on (P); return their number and the violation left."""
    # The numbers are the lines of the chapter's algorithm. 2, 4: i has the largest A − F.
    i = largest_difference(A, F)
    for n_iter in range(max_iter):
        if i < 0:  # nothing may rise, or F is not finite
            return n_iter, np.inf
        top = A[i] - F[i]
        if cache.slot[i] < 0:
            compute_row(cache, rows, i)
        Ki = cache.values[used_slot(cache.slot, cache.stamp, cache.clock, i)]
        least = tau * diagonal[i]  # curvature; of two rows of unlike size it is more by itself
        # 5: j promises the largest gain.
        # At a breakpoint rounding may leave i a descent partner of itself.
        b_i, B[i] = B[i], BIG
        j = select_j(F, B, Ki, diagonal, diagonal[i], top, least, score, bits)
        B[i] = b_i
        # 3: asked only where the chosen pair violates little, as it costs a pass over all points.
        if j < 0 or top + F[j] - B[j] < tol:
            violation = top - least_difference(B, F)
            if j < 0 or violation < tol:
                return n_iter, violation
        if cache.slot[j] < 0:
            compute_row(cache, rows, j)
        Kj = cache.values[used_slot(cache.slot, cache.stamp, cache.clock, j)]
        # 6: the next breakpoints; 7: the step of the pair, or up to the nearer of them.
        stop_i = c.mid[i] if beta[i] < c.mid[i] else c.hi[i]
        stop_j = c.mid[j] if beta[j] > c.mid[j] else c.lo[j]
        t = (top + F[j] - B[j]) / max((diagonal[i] - Ki[j]) + (diagonal[j] - Ki[j]), least)
        t = min(t, stop_i - beta[i], beta[j] - stop_j)
        # 8: Land on breakpoints exactly: the slopes there are decided by equality.
        beta[i] = stop_i if t == stop_i - beta[i] else beta[i] + t
        beta[j] = stop_j if t == beta[j] - stop_j else beta[j] - t
        # 2: only these two slopes change.
        A[i], B[i] = slope_up(c, i, beta[i]), slope_down(c, i, beta[i])
        A[j], B[j] = slope_up(c, j, beta[j]), slope_down(c, j, beta[j])
        # 9 and 4 in one pass. What has just moved down may rise.
        i = update_and_select_i(F, A, Ki, Kj, t, j, score, bits)
    return max_iter, A[i] - F[i] - least_difference(B, F)
