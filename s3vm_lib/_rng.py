"""Counter-based random numbers for use inside kernels.

The i-th number of a stream is a function of (key, i) alone: no state is carried along, so a kernel
may draw numbers in any order, skip some, or share the work between threads, and still obtains the
same values. The generator is splitmix64 [1]_: the i-th output is a bijective 64-bit mixing of
``key + (i + 1) * 0x9E3779B97F4A7C15`` modulo 2⁶⁴.

Use one stream per purpose (``hash_key(seed, 0)`` for the order of the points, ``hash_key(seed, 1)``
for the features, ...); within a stream, `uniform`, `integer` and `bits` share the same underlying
64-bit words, and `normal` has words of its own.

References
----------
.. [1] Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable pseudorandom number
   generators. OOPSLA '14, 453-472.
"""

import math

import numpy as np

from s3vm_lib._numba import njit

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB
_MASK = 0xFFFFFFFFFFFFFFFF
_NORMAL_STREAM = 0x6E6F726D  # keeps the words behind `normal` apart from those behind `uniform`


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
    """The i-th 64-bit word of a stream: output i of splitmix64 started at `key`.

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
    """Key of one of the independent streams that belong to a seed.

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
    """The i-th number of a stream, uniform on [0, 1).

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
    """The i-th number of a stream, uniform on {0, ..., n − 1}.

    Parameters
    ----------
    key : int
        Key of the stream.
    i : int
        Counter, i ≥ 0.
    n : int
        Number of values, 1 ≤ n. The probabilities differ by less than n·2⁻⁵³ relative to 1/n.

    Returns
    -------
    int
    """
    # The product can round up to n itself when n is slightly above a power of two.
    return min(int(uniform(key, i) * n), n - 1)


@njit
def normal(key, i):
    """The i-th number of a stream, standard normal (Box-Muller, one of the pair).

    Parameters
    ----------
    key : int
        Key of the stream.
    i : int
        Counter, i ≥ 0.

    Returns
    -------
    float
    """
    key = _bits(key, _NORMAL_STREAM)
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(key, 2 * i)))
    return radius * math.cos(2.0 * math.pi * uniform(key, 2 * i + 1))
