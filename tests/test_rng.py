import itertools
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from scipy import stats

from s3vm_lib.utils import random_numbers
from s3vm_lib.utils.jit import njit
from s3vm_lib.utils.random_numbers import bits, hash_key, integer, uniform

N = 20_000


@njit
def _fill(seed, n, uniforms, integers):
    key = hash_key(seed, 3)
    for i in range(n):
        uniforms[i] = uniform(key, i)
        integers[i] = integer(key, i, 7)


@njit(nogil=True)
def _fill_range(key, start, stop, out):
    for i in range(start, stop):
        out[i] = uniform(key, i) + integer(key, i, 3)


def _draw(seed, n=N):
    out = np.empty(n), np.empty(n, dtype=np.int64)
    _fill(seed, n, *out)
    return out


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (
            1234567,
            [
                6457827717110365317,
                3203168211198807973,
                9817491932198370423,
                4593380528125082431,
                16408922859458223821,
            ],
        ),
    ],
)
def test_published_outputs_of_splitmix64(seed, words):
    assert [int(bits(seed, i)) for i in range(len(words))] == words
    assert [random_numbers._bits_python(seed, i) for i in range(len(words))] == words


def test_uniform_on_the_unit_interval():
    u = _draw(0)[0]
    assert u.min() >= 0 and u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > 1e-3
    # neighbouring counters are uncorrelated: |r| < 4 / sqrt(n)
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 4 / np.sqrt(N)


def test_normal_numbers_have_the_moments_of_the_standard_normal():
    """Within four standard errors, which a deviation of 0.99 misses by three more."""
    n = 200_000
    whole = np.empty(n, np.float32)
    random_numbers.normals(hash_key(6, 0), whole)
    z = whole.astype(float)
    assert stats.kstest(z[:N], "norm").pvalue > 1e-3
    assert abs(z.mean()) < 4 / np.sqrt(n)
    assert abs(np.mean(z**2) - 1) < 4 * np.sqrt(2 / n)
    assert abs(np.mean(z**4) - 3) < 4 * np.sqrt(96 / n)
    assert abs(np.mean(z[:-1] * z[1:])) < 4 / np.sqrt(n)


def test_integer_is_uniform_and_in_range():
    k = _draw(2)[1]
    assert stats.chisquare(np.bincount(k, minlength=7)).pvalue > 1e-3
    assert {int(integer(5, i, 1)) for i in range(100)} == {0}


def key_of(word, i):
    """The key whose i-th word this is: the steps of the generator undone."""
    z, mask = word, 2**64 - 1
    for shift, factor in ((31, random_numbers._MIX_2), (27, random_numbers._MIX_1), (30, 1)):
        z ^= z >> shift ^ z >> 2 * shift
        z = z * pow(factor, -1, 2**64) & mask
    return z - (i + 1) * random_numbers._GOLDEN & mask


@pytest.mark.parametrize("word", [2**64 - 1, 0])
def test_the_largest_and_the_smallest_word_stay_in_range(word):
    i = next(i for i in range(100) if key_of(word, i) < 2**63)
    key = key_of(word, i)
    assert int(bits(key, i)) == word
    assert uniform(key, i) == (1 - 2.0**-53 if word else 0.0)
    for n in (1, 2, 3, 7, 2**31 - 1, 2**31, 2**31 + 1, 2**52 - 1, 2**52 + 1, 2**53 - 1, 2**53):
        assert int(integer(key, i, n)) == (n - 1 if word else 0)


def test_streams_and_seeds_are_independent():
    draws = []
    for seed, stream in [(0, 0), (0, 1), (1, 0), (1, 1), (2**62, 0)]:
        key = hash_key(seed, stream)
        draws.append([uniform(key, i) for i in range(2000)])
    off_diagonal = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(off_diagonal).max() < 4.5 / np.sqrt(2000)
    assert len({int(hash_key(s, t)) for s in range(40) for t in range(40)}) == 1600
    # Nor do they meet where seeds differ by the generator's own increment.
    late = 2**63 - 1
    early = late + random_numbers._GOLDEN & 2**64 - 1
    assert hash_key(late, 1) != hash_key(early, 0)


def test_whole_arrays_hold_the_numbers_of_the_scalar_functions():
    key = hash_key(9, 4)
    for start in (0, 7):
        u, k = np.empty(100, np.float32), np.empty(100, np.int64)
        random_numbers.uniforms(key, start, u)
        random_numbers.integers(key, start, 13, k)
        exact = np.array([uniform(key, start + i) for i in range(100)])
        assert np.all((u <= exact) & (exact < u + 2.0**-24))
        assert k.tolist() == [int(integer(key, start + i, 13)) for i in range(100)]
    longest, z = np.empty(8, np.float32), np.empty(7, np.float32)
    random_numbers.normals(key, longest)
    random_numbers.normals(key, z)
    np.testing.assert_array_equal(z, longest[:7])


def test_threads_do_not_change_the_numbers():
    key = hash_key(11, 0)
    alone, shared = np.empty(N), np.empty(N)
    _fill_range(key, 0, N, alone)
    cuts = [0, 1234, 9999, N]
    threads = [
        threading.Thread(target=_fill_range, args=(key, a, b, shared))
        for a, b in itertools.pairwise(cuts)
    ]
    for thread in reversed(threads):
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(alone, shared)


def test_interpreted_code_gives_the_same_numbers_without_warnings():
    code = (
        "import numpy as np\n"
        "from s3vm_lib.utils.random_numbers import bits, hash_key, integer, uniform\n"
        "k = hash_key(2**62 + 5, 2)\n"
        "for i in range(20):\n"
        "    print(int(bits(k, i)), float(uniform(k, np.int64(i))).hex(), int(integer(k, i, 97)))"
    )
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    key = hash_key(2**62 + 5, 2)
    for i, line in enumerate(run.stdout.splitlines()):
        word, u, k = line.split()
        assert int(word) == int(bits(key, i))
        assert u == float(uniform(key, i)).hex()
        assert int(k) == int(integer(key, i, 97))


def test_the_interpreted_words_equal_the_compiled_ones():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for key in (0, 1, 2**32, 2**62, 2**63 - 1):
            for i in (0, 1, 2**31, 2**62):
                assert int(bits(key, i)) == random_numbers._bits_python(key, i)
