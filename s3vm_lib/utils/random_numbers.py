"""Counter-based random numbers for use inside kernels.

The i-th number of a stream is a function of (key, i) alone: no state is carried along, so a kernel
may draw numbers in any order, skip some, or share the work between threads, and still obtains the
same values. The generator is splitmix64 [1]_: the i-th output is a bijective 64-bit mixing of
``key + (i + 1) * 0x9E3779B97F4A7C15`` modulo 2⁶⁴.

Use one stream per purpose (``hash_key(seed, 0)`` for the order of the points, ``hash_key(seed, 1)``
for the features, ...); within a stream, all functions share the same underlying 64-bit words.
Streams nest: ``hash_key(hash_key(seed, 1), t)`` is the stream of iteration t among those of the
features.

`integers`, `uniforms` and `normals` fill whole arrays. The last two work in single precision, from
24 random bits a number, in loops that the compiler vectorizes.

References
----------
.. [1] Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable pseudorandom number
   generators. OOPSLA '14, 453-472.
"""

import numpy as np

from s3vm_lib.utils.jit import njit

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_MASK = 0xFFFFFFFFFFFFFFFF


def _bits_machine(key, i):
    z = np.uint64(key) + (np.uint64(i) + np.uint64(1)) * np.uint64(_GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_2)
    return z ^ (z >> np.uint64(31))


def _bits_python(key, i):
    z = (int(key) + (int(i) + 1) * _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * _MIX_1) & _MASK
    z = ((z ^ (z >> 27)) * _MIX_2) & _MASK
    return z ^ (z >> 31)


# Machine words wrap around silently only in compiled code: NumPy's scalars would warn, so that
# Python's unbounded integers with a mask take over wherever nothing is compiled.
_compiled = njit(_bits_machine)
_bits = _bits_python if _compiled is _bits_machine else _compiled


@njit
def bits(key, i):
    """Return the i-th 64-bit word of a stream: output i of splitmix64 started at `key`.

    Parameters
    ----------
    key : int
        Key of the stream, 0 ≤ key < 2⁶³, usually from `hash_key`.
    i : int
        Counter, i ≥ 0.

    Returns
    -------
    int
        An unsigned 64-bit integer.
    """
    return _bits(key, i)


@njit
def hash_key(seed, stream):
    """Return the key of one of the independent streams that belong to a seed.

    Parameters
    ----------
    seed : int
        Seed, 0 ≤ seed < 2⁶³; the estimators draw it once from their `random_state`.
    stream : int
        Number of the stream, stream ≥ 0.

    Returns
    -------
    int
        A non-negative 63-bit integer, to be passed to the other functions of this module. (numba
        takes every Python integer for a signed one, so a 64th bit could not cross over.)
    """
    return np.int64(_bits(_bits(seed, 0), stream) >> np.uint64(1))


@njit
def uniform(key, i):
    """Return the i-th number of a stream, uniform on [0, 1).

    Parameters
    ----------
    key : int
        Key of the stream.
    i : int
        Counter, i ≥ 0.

    Returns
    -------
    float
        A multiple of 2⁻⁵³ in [0, 1).
    """
    return np.float64(_bits(key, i) >> np.uint64(11)) * 2.0**-53


@njit
def integer(key, i, n):
    """Return the i-th number of a stream, uniform on {0, ..., n − 1}.

    Parameters
    ----------
    key : int
        Key of the stream.
    i : int
        Counter, i ≥ 0.
    n : int
        Number of values, 1 ≤ n ≤ 2⁵³. The probabilities differ by less than n·2⁻⁵³ relative to 1/n.

    Returns
    -------
    int
    """
    # Never n itself: the largest product, n − n·2⁻⁵³, is half a unit in the last place below n or
    # more, and half only for powers of two, where it is exact.
    return int(uniform(key, i) * n)


# --- Whole arrays ---------------------------------------------------------------------------------

_2_POW_MINUS_24 = np.float32(2.0**-24)
_QUARTER = np.float32(0.25)
_HALF = np.float32(0.5)
_ONE = np.float32(1.0)
# sin(2πq) = q (S0 + S1 q² + …) on |q| ≤ 1/4, by minimax; error below 4e-9 before rounding.
_S0, _S1, _S2, _S3, _S4 = (
    np.float32(v)
    for v in (6.28318516009, -41.341655031593, 81.601004082284, -76.549782471427, 39.536707261828)
)
# log(1 + g) = g (L0 + L1 g + …) on |g| ≤ 1/3, by minimax; relative error below 3e-8.
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8 = (
    np.float32(v)
    for v in (
        1.000000003565,
        -0.499999321221,
        0.333331687063,
        -0.250080272635,
        0.200119442890,
        -0.164127910413,
        0.139876518496,
        -0.154031983012,
        0.140561083276,
    )
)
_LOG2 = np.float32(0.6931471805599453)


@njit
def quarter_sine(q):
    """Return sin(2πq) for one float32 |q| ≤ 1/4, off by at most 2·10⁻⁷."""
    p = q * q
    return q * (_S0 + p * (_S1 + p * (_S2 + p * (_S3 + p * _S4))))


@njit
def cos_turns(t):
    """Return cos(2πt) for one float32 t, by a polynomial without branches, which vectorizes.

    Parameters
    ----------
    t : np.float32

    Returns
    -------
    np.float32
        Off by at most 2·10⁻⁷ from the cosine of the given t.
    """
    return quarter_sine(_QUARTER - abs(t - np.rint(t)))


@njit(nogil=True)
def integers(key, start, n, out):
    """Fill an array with numbers start, start + 1, … of a stream, uniform on {0, …, n − 1}.

    Parameters
    ----------
    key : int
        Key of the stream.
    start : int
        First counter.
    n : int
        Number of values.
    out : ndarray of int64, shape (m,)
        Written.
    """
    for i in range(out.size):
        out[i] = integer(key, start + i, n)


@njit(nogil=True)
def uniforms(key, start, out):
    """Return numbers start, start + 1, … of a stream, uniform on the multiples of 2⁻²⁴ in [0, 1).

    Parameters
    ----------
    key : int
        Key of the stream.
    start : int
        First counter.
    out : ndarray of float32, shape (m,)
        Written.
    """
    for i in range(out.size):
        out[i] = np.float32(uniform(key, start + i) * 2.0**24 // 1) * _2_POW_MINUS_24


def normals(key, out):
    """Return standard normal numbers of a stream, by Box-Muller on pairs of 24-bit uniforms.

    Parameters
    ----------
    key : int
        Key of the stream. The words are those of `uniform`: give normal numbers a key of their own.
    out : ndarray of float32, shape (m,)
        Written, one word for every two numbers. The largest possible value is 5.89, which a
        standard normal number exceeds once in 10⁹ draws.
    """
    first, second = np.empty((2, (out.size + 1) // 2), np.int32)
    radius = np.empty(first.size, np.float32)
    _box_muller(key, out, first, second, radius, radius.view(np.int32))


@njit
def _box_muller(key, out, first, second, radius, whole):
    """Compute `normals` in the arrays of the caller; ``whole`` are the bits of ``radius``."""
    half = first.size
    for i in range(half):
        word = bits(key, i)
        first[i] = np.int32(word >> np.uint64(40))
        second[i] = np.int32((word >> np.uint64(8)) & np.uint64(0xFFFFFF))
    for i in range(half):
        radius[i] = (np.float32(first[i]) + _HALF) * _2_POW_MINUS_24
    for i in range(half):
        # u = 2^e (1 + g) with |g| ≤ 1/3, read off and written into the bits of the number.
        exponent = (whole[i] - np.int32(0x3F2AAAAB)) >> np.int32(23)
        first[i] = exponent
        whole[i] -= exponent << np.int32(23)
    for i in range(half):
        g = radius[i] - _ONE
        p = _L4 + g * (_L5 + g * (_L6 + g * (_L7 + g * _L8)))
        p = g * (_L0 + g * (_L1 + g * (_L2 + g * (_L3 + g * p))))
        minus_log = -(p + np.float32(first[i]) * _LOG2)
        radius[i] = np.sqrt(np.float32(2.0) * max(minus_log, np.float32(0.0)))
    for i in range(out.size // 2):
        t = np.float32(second[i]) * _2_POW_MINUS_24
        out[2 * i] = radius[i] * cos_turns(t)
        out[2 * i + 1] = radius[i] * cos_turns(t - _QUARTER)
    if out.size % 2 == 1:
        out[-1] = radius[-1] * cos_turns(np.float32(second[-1]) * _2_POW_MINUS_24)
