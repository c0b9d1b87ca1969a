"""IL-S3VM in plain NumPy: the twin of `s3vm_lib.path_following`, one signed variable per sample.

Numbers in comments are the lines of the algorithm in the chapter on path following. K is the Gram
matrix with the ridge on its diagonal; every step computes all outputs and solves from scratch.
"""

from types import SimpleNamespace

import numpy as np

TINY = 1e-12  # what counts as no movement: a share of the terms that add up to it


def empty(n):
    """Return a solution for n samples none of which takes part yet: the set "-"."""
    alpha, f, c, free, up = np.zeros((5, n))
    kept = dict(alpha=alpha, f=f, c=c, free=free > 0, up=up > 0, s=np.ones(n))
    return SimpleNamespace(**kept, b=0.0, sets=np.full(n, "-"), history=[])


def insert(K, p, k, label, c):
    """Let sample k take part, with its label or, for label 0, the sign of its output."""
    p.s[k], p.free[k], p.c[k] = label or (1.0 if p.f[k] >= 0 else -1.0), label == 0, c
    p.sets[k], p.up[k] = "O" if p.s[k] * p.f[k] >= 1 else "A", True  # 1
    follow(K, p)


def remove(K, p, k):
    """Remove sample k: its α goes back to 0."""
    p.sets[k], p.up[k], p.c[k], p.free[k] = "A", False, 0.0, False
    follow(K, p)


def direction(K, p, d):
    """Return the movement of all α and of b for which the outputs of M stay and Σα = 0."""
    M, v, one = p.sets == "M", d.copy(), np.ones((1, np.sum(p.sets == "M")))
    if not M.any():
        return (0 * d, np.sign(d.sum())) if abs(d.sum()) > TINY * abs(d).sum() else (d, 0.0)
    H = np.block([[np.zeros((1, 1)), one], [one.T, K[M][:, M]]])
    delta, *v[M] = np.linalg.solve(H, -np.append(d.sum(), K[M] @ d))
    return v, delta


def follow(K, p):
    """Move from event to event until A is empty."""
    while np.any(p.sets == "A"):
        O, M, E, A = (p.sets == name for name in "OMEA")
        a, z, box = p.s * p.alpha, p.s * p.f, A & (p.c > 0) & (p.s * p.alpha > -TINY * p.c)
        p.up[box] = z[box] < 1 + 1e-9
        d = np.where(A, p.s * p.c * p.up - p.alpha, 0.0)  # 2
        v, delta = direction(K, p, d)  # 3
        g, here, rate_a = K @ v + delta, A & (v.any() or not d.any()), p.s * v
        still, flat = TINY * abs(v).max(), TINY * (max(abs(K) @ abs(v)) + abs(delta))
        up, down = p.s * g > flat, p.s * g < -flat
        margin = (O | box & ~p.up) & down | (E | box & p.up) & up
        enters, turns = A & (a < -TINY * p.c) & (rate_a > still), p.free & (E | A & p.up) & down
        who = np.array([M & (rate_a < -still), M & (rate_a > still), margin, turns, enters, here])
        way, rate = [a, p.c - a, 1 - z, z, -a, A], [-rate_a, rate_a, p.s * g, -p.s * g, rate_a, A]
        times = np.where(who, np.maximum(way / np.where(who, rate, 1), 0), np.inf)  # 4
        event, i = np.unravel_index(np.argmin(times), times.shape)
        eta = times[event, i]
        p.alpha, p.b, p.f = p.alpha + eta * v, p.b + eta * delta, p.f + eta * g  # 5
        p.history.append((eta, "OEMA+ "[event], i))
        settled = np.where(p.c == 0, "-", np.where(p.up, "E", "O"))[A]  # 6
        p.sets[A if event == 5 else i] = settled if event == 5 else "OEMAA"[event]  # 7
        p.s[i], p.up[i] = (-p.s[i], True) if event == 3 else (p.s[i], p.up[i])  # 8
