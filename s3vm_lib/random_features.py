"""Random features: k(x, x') = E φ(x)φ(x'), in blocks that a counter-based stream can redraw.

A block holds m features φ_1, …, φ_m whose mean product estimates the kernel without bias,

    k(x, x') ≈ (1/m) Σ_j φ_j(x) φ_j(x').

rbf and laplacian
    φ(x) = √2 σ_f cos(ω·x + β) with β uniform on a turn and ω from the spectral density of the
    kernel (Bochner): normal with variance 2γ for exp(−γ‖x − x'‖²), Cauchy with scale γ in every
    coordinate for exp(−γ‖x − x'‖₁). With *paired* features β is not random: every ω gives two
    features, β = 0 and β = −1/4 of a turn (a cosine and a sine). Half of the products ω·x are
    saved, and for rbf the kernel is estimated with less variance.
poly
    φ(x) = σ_f Π_{k ≤ degree} (r_k·x̃) with x̃ = (√γ x, √coef0) and independent random signs r_k:
    the mean of (r·x̃)(r·x̃') over the signs is x̃·x̃', and the factors are independent.
linear
    The features are the coordinates themselves, √d σ_f x_j, and nothing is random.

Block t of a stream is a function of (seed, t) alone. It can be stored, or drawn again whenever it
is needed, so that of a function f = Σ_t Σ_j α_tj φ_tj nothing is kept but α. Everything is in
single precision: the inner products by BLAS on tiles that stay in the cache, and the cosine by a
polynomial in *turns*, that is with ω/2π in place of ω.

References
----------
A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007; P. Kar and
H. Karnick, "Random feature maps for dot product kernels", AISTATS 2012; F. X. Yu, A. T. Suresh,
K. Choromanski, D. Holtmann-Rice and S. Kumar, "Orthogonal random features", NIPS 2016; B. Dai,
B. Xie, N. He, Y. Liang, A. Raj, M.-F. Balcan and L. Song, "Scalable kernel methods via doubly
stochastic gradients", NIPS 2014, for features redrawn from their seed; D. J. Sutherland and
J. Schneider, "On the error of random Fourier features", UAI 2015, for paired features.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from s3vm_lib.kernels import Kernel
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.random_numbers import cos_turns, hash_key, normals, quarter_sine, uniforms
from s3vm_lib.utils.threads import in_threads

FEATURE_KERNELS = ("linear", "poly", "rbf", "laplacian")
# Numbers of one purpose never share a stream with those of another.
FEATURES, DATA = 1, 2

_TILE = 2**16  # feature values that are computed at once: 256 KB, which fit the cache
_GROUP = 2**21  # entries of ω that are drawn before the rows are visited


# --- Cosines --------------------------------------------------------------------------------------


# "contract" lets the compiler fuse a·b + c, which is one rounding instead of two.
@njit(nogil=True, fastmath={"contract"})
def add_cosines(T, b):
    """Replace T by cos 2π(T + b), rows of turns (n, m) and phases (m,), both float32."""
    for i in range(T.shape[0]):
        row = T[i]
        for j in range(row.size):
            row[j] = cos_turns(row[j] + b[j])


@njit(nogil=True, fastmath={"contract"})
def cosines_and_sines(T, out):
    """Write cos 2πT and sin 2πT side by side into ``out``: (n, h) float32 to (n, 2h)."""
    h = T.shape[1]
    for i in range(T.shape[0]):
        row, cosine, sine = T[i], out[i, :h], out[i, h:]
        for j in range(h):
            # The turn modulo 1, |r| ≤ ½, of which a quarter wave gives both values.
            r = row[j] - np.rint(row[j])
            q = np.float32(0.25) - abs(r)
            cosine[j] = quarter_sine(q)
            sine[j] = np.copysign(quarter_sine(np.float32(0.25) - abs(q)), r)


# The compiler may choose the order of this sum too ("reassoc"), once for all rows of one length:
# nothing else makes it vectorize.
@njit(nogil=True, fastmath={"contract", "reassoc"})
def add_waves(T, phase, amplitude, total):
    """Add Σ_j amplitude_j cos 2π(T_ij + phase_j) to total_i; T (n, h) in turns, float32."""
    for i in range(T.shape[0]):
        row, f = T[i], np.float32(0.0)
        for j in range(row.size):
            f += amplitude[j] * cos_turns(row[j] + phase[j])
        total[i] += f


# --- Streams of blocks ----------------------------------------------------------------------------


class Block(NamedTuple):
    """One block of m features; φ(x) = scale · `FeatureStream.values`."""

    index: int  # t
    W: np.ndarray  # (d, m) turns per unit, (d, m/2) if paired, signs (d, degree·m) of poly
    b: np.ndarray  # (m,) phases in turns, or what coef0 adds, (degree·m,); empty if paired
    size: int  # m
    scale: float


@dataclass(frozen=True)
class FeatureStream:
    """Blocks of random features, each a function of (seed, t) alone.

    Parameters
    ----------
    kernel : Kernel
        ``rbf``, ``laplacian``, ``poly`` with coef0 ≥ 0, or ``linear``.
    n_dims : int
        Dimension d of the rows.
    block_size : int
        Number m of features of a block; raised by one if it is odd and the features are paired,
        and always d for the linear kernel.
    seed : int
        0 ≤ seed < 2⁶³.
    paired : bool, default=True
        Cosine and sine of every ω instead of random phases; rbf and laplacian only.
    orthogonal : bool, default=False
        Make groups of d frequencies of a block orthogonal, lengths still drawn as those of d
        independent normal numbers; rbf only. It lowers the variance further and costs a QR
        decomposition of d × d for every d frequencies.

    Raises
    ------
    ValueError
        For a kernel without such features, or orthogonal ones for any but rbf.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib.kernels import Kernel
    >>> from s3vm_lib.random_features import FeatureStream
    >>> stream = FeatureStream(Kernel("rbf", gamma=0.5), n_dims=2, block_size=200_000, seed=0)
    >>> Z = stream.features(np.array([[0.0, 0.0], [1.0, 0.0]]), stream.block(0))
    >>> bool(abs(Z[0] @ Z[1] / 200_000 - np.exp(-0.5)) < 0.01)
    True
    """

    kernel: Kernel
    n_dims: int
    block_size: int
    seed: int
    paired: bool = True
    orthogonal: bool = False

    def __post_init__(self):
        if self.kernel.name not in FEATURE_KERNELS:
            raise ValueError(f"kernel must be one of {FEATURE_KERNELS}, got {self.kernel.name!r}")
        if self.kernel.name == "poly" and self.kernel.coef0 < 0:
            raise ValueError(f"coef0 must be non-negative for features, got {self.kernel.coef0}")
        if self.orthogonal and self.kernel.name != "rbf":
            raise ValueError(f"orthogonal features need kernel='rbf', got {self.kernel.name!r}")
        size = int(self.block_size)
        if self.kernel.name == "linear":
            size = self.n_dims
        elif self._pairs:
            size += size % 2
        object.__setattr__(self, "block_size", size)

    @property
    def _pairs(self):
        return self.paired and self.kernel.name in ("rbf", "laplacian")

    def block(self, t):
        """Draw block t.

        Parameters
        ----------
        t : int
            Index, t ≥ 0.

        Returns
        -------
        Block
        """
        kernel, d, m = self.kernel, self.n_dims, self.block_size
        key = hash_key(hash_key(self.seed, FEATURES), t)
        empty = np.empty(0, np.float32)
        if kernel.name == "linear":
            return Block(t, empty.reshape(d, 0), empty, d, math.sqrt(d) * kernel.sigma_f)
        if kernel.name == "poly":
            signs = np.empty((d + 1) * m * kernel.degree, np.float32)
            uniforms(hash_key(key, 0), 0, signs)
            signs = np.where(signs < 0.5, np.float32(-1), np.float32(1)).reshape(d + 1, -1)
            W = signs[:d] * np.float32(math.sqrt(kernel.gamma))
            return Block(t, W, signs[d] * np.float32(math.sqrt(kernel.coef0)), m, kernel.sigma_f)
        h = m // 2 if self._pairs else m
        W = np.empty(d * h, np.float32)
        if kernel.name == "rbf":
            normals(hash_key(key, 0), W)
            W = W.reshape(d, h)
            if self.orthogonal:
                W = _orthogonalized(W)
            W *= np.float32(math.sqrt(2 * kernel.gamma) / (2 * math.pi))
        else:
            uniforms(hash_key(key, 0), 0, W)
            np.tan(np.float32(math.pi) * (W - np.float32(0.5 - 2.0**-25)), out=W)
            W = W.reshape(d, h)
            W *= np.float32(kernel.gamma / (2 * math.pi))
        b = empty
        if not self._pairs:
            b = np.empty(m, np.float32)
            uniforms(hash_key(key, 1), 0, b)
        return Block(t, W, b, m, math.sqrt(2) * kernel.sigma_f)

    def values(self, X, block, out=None):
        """Return the features of some rows before the factor ``block.scale``.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of float32, shape (n, d)
        block : Block
        out : ndarray of float32, shape (n, m), default=None
            Written and returned, if given.

        Returns
        -------
        ndarray of float32, shape (n, m)
        """
        n = X.shape[0]
        if out is None:
            out = np.empty((n, block.size), np.float32)
        name = self.kernel.name
        if name == "linear":
            out[...] = X.toarray() if sp.issparse(X) else X
        elif name == "poly":
            T = _product(X, block.W)
            T += block.b
            np.prod(T.reshape(n, self.kernel.degree, block.size), axis=1, out=out)
        elif self._pairs:
            cosines_and_sines(_product(X, block.W), out)
        else:
            add_cosines(_product(X, block.W, out), block.b)
        return out

    def waves(self, block, weight):
        """Return Σ_j weight_j c_j as a sum of cosines, for the values c_j of rbf and laplacian.

        The cosine and the sine of one frequency are one cosine with a phase, of half the cost:
        u cos θ + v sin θ = √(u² + v²) cos(θ − φ), where φ is the angle of (u, v).

        Parameters
        ----------
        block : Block
        weight : ndarray of shape (m,)

        Returns
        -------
        phase, amplitude : ndarrays of float32, one entry for each column of ``block.W``
            Phases in turns.
        """
        phase, amplitude = block.b, weight
        if self._pairs:
            cosine, sine = weight.reshape(2, -1)
            phase = np.arctan2(sine, cosine) / (-2.0 * math.pi)
            amplitude = np.hypot(cosine, sine)
        return phase.astype(np.float32), amplitude.astype(np.float32)

    def features(self, X, block):
        """Return φ_j(x_i) of all rows, float64 of shape (n, m): for tests and small data."""
        X = single(X)
        return block.scale * self.values(X, block).astype(np.float64)

    def turns(self, X):
        """Return an upper estimate of the turns that ω·x makes on the rows of X (4 deviations)."""
        largest = max(abs(float(X.max())), abs(float(X.min()))) if X.shape[0] else 0.0
        gamma = self.kernel.gamma
        rate = {"rbf": 4 * math.sqrt(2 * gamma * self.n_dims), "laplacian": gamma * self.n_dims}
        return largest * rate.get(self.kernel.name, 0.0) / (2 * math.pi)


def _product(X, W, out=None):
    """Return XW in single precision for dense or sparse rows."""
    if sp.issparse(X):
        T = X @ W
        if out is None:
            return T
        out[...] = T
        return out
    return np.matmul(X, W, out=out)


def _orthogonalized(W):
    """Return columns of W in groups of d made orthonormal, times the lengths that they had."""
    d, h = W.shape
    length = np.sqrt(np.einsum("ij,ij->j", W, W))
    for start in range(0, h, d):
        Q, R = np.linalg.qr(W[:, start : start + d])
        # With these signs Q is uniform over the orthogonal matrices (Mezzadri, 2007).
        W[:, start : start + d] = Q * np.where(np.diagonal(R) < 0, np.float32(-1), np.float32(1))
    W *= length
    return W


def single(X):
    """Return rows of float32, a contiguous ndarray or CSR matrix, copied if need be."""
    if sp.issparse(X):
        return sp.csr_matrix(X, dtype=np.float32)
    return np.ascontiguousarray(X, dtype=np.float32)


# --- Functions on features ------------------------------------------------------------------------


def row_tiles(n, width):
    """Return slices of n rows whose features fit the cache; the same for all threads."""
    step = max(16, _TILE // max(1, width))
    return [slice(start, min(start + step, n)) for start in range(0, n, step)]


def outputs(stream, X, alpha, blocks=None, n_jobs=None, double=False):
    """Return f(x_i) = Σ_t Σ_j α_tj φ_tj(x_i): Algorithm 2 of TSGS3VM, for many rows at a time.

    Blocks are redrawn in groups, each group once for all rows; then every tile of rows adds them
    in the order of t, so that the number of threads has no influence on a single bit.

    Parameters
    ----------
    stream : FeatureStream
    X : {ndarray, CSR matrix} of shape (n, d)
        May be a memory map; rows are converted tile by tile.
    alpha : ndarray of shape (T, m)
        Coefficients of the blocks 0, …, T − 1.
    blocks : sequence of Block, default=None
        The blocks, if they are stored; None redraws them.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn.
    double : bool, default=False
        Multiply the features, which are in single precision, by α in double precision. Otherwise
        rbf and laplacian features are summed while they are computed, by `FeatureStream.waves`,
        in less than half the time.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    dtype = np.float64 if double else np.float32
    fused = stream.kernel.name in ("rbf", "laplacian") and not double
    n, T = X.shape[0], len(alpha)
    f = np.zeros(n)
    if T == 0:
        return f
    size = max(1, int(np.size(stream.block(0).W) if blocks is None else blocks[0].W.size))
    count = T if blocks is not None else max(1, _GROUP // size)
    tiles = row_tiles(n, stream.block_size)
    for start in range(0, T, count):
        index = range(start, min(start + count, T))
        group = [blocks[t] for t in index] if blocks else in_threads(stream.block, index, n_jobs)
        weights = [block.scale * alpha[block.index] for block in group]
        if fused:
            weights = [stream.waves(*pair) for pair in zip(group, weights, strict=True)]
        else:
            weights = [weight.astype(dtype) for weight in weights]

        def add(tile, group=group, weights=weights):
            rows = single(X[tile])
            total = f[tile]
            shape = (rows.shape[0], group[0].W.shape[1] if fused else stream.block_size)
            buffer = np.empty(shape, np.float32)
            for block, weight in zip(group, weights, strict=True):
                if fused:
                    add_waves(_product(rows, block.W, buffer), *weight, total)
                else:
                    total += stream.values(rows, block, buffer).astype(dtype, copy=False) @ weight

        in_threads(add, tiles, n_jobs)
    return f
