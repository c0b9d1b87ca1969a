"""Algorithm 1 of the GKM in plain NumPy: w and its average as dense vectors of coefficients.

Numbers in comments are the lines of the algorithm in the chapter. The kernel is whatever Gram
matrix is given; add 1 to it for an offset.
"""

import numpy as np

from s3vm_lib.losses import LabeledLoss


def objective(alpha, K, y, labeled, edges, mu, C_mean, C_graph, p, loss):
    """Return J(w) at f = Kα; C_mean, the paper's C, weights the mean loss, C_graph the edges."""
    f, l = K @ alpha, labeled
    smoothness = np.mean(mu * np.abs(f[edges[:, 0]] - f[edges[:, 1]]) ** p)
    return 0.5 * alpha @ f + C_mean * np.mean(loss.value(y[l], f[l])) + C_graph * smoothness


def fit(K, y, edges, mu, C_mean, C_graph, p, draws, loss="hinge", printed=False, radius=np.inf):
    """Return coefficients of the average w̄ and of the last w; ``draws`` has (labeled row, edge)s.

    With ``printed=True`` the average takes the new w, as in line 5 of the paper; Lemma 1 and
    Theorem 1 are about the average of the old ones. A finite radius projects w onto a ball.
    """
    loss = LabeledLoss(loss) if isinstance(loss, str) else loss
    w, average = np.zeros(len(K)), np.zeros(len(K))  # 1
    for t, (i, e) in enumerate(draws, start=1):  # 2, 3
        xi = np.zeros(len(K))
        xi[i] = C_mean * loss.derivative(y[i], K[i] @ w)
        u, v = edges[e]
        d = (K[u] - K[v]) @ w
        slope = C_graph * mu[e] * p * np.sign(d) * np.abs(d) ** (p - 1)
        xi[u] += slope
        xi[v] -= slope
        old, w = w, (t - 1) / (t + 1) * w - 2 / (t + 1) * xi  # 4
        w = w * min(1, radius / max(np.sqrt(w @ K @ w), 1e-300))  # not in the paper: projection
        average = (t - 1) / (t + 1) * average + 2 / (t + 1) * (w if printed else old)  # 5
    return average, w  # 6
