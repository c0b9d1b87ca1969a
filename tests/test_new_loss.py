"""A loss added as CONTRIBUTING says: right in a solver that takes it, or refused by name.

The library is copied and changed, so that the loss lives only here: ½(1 − z)², the loss of the
least squares SVM.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BRANCHES = {
    "labeled_value": "0.5 * (1.0 - z) ** 2",
    "labeled_derivative": "-y * (1.0 - z)",
    "labeled_curvature": "1.0",
    "slope_range": "-math.inf, math.inf",
    "labeled_conjugate": "v + 0.5 * v * v",
    "conjugate_curvature": "1.0 / c",
    "dual_cost": "-math.inf, 0.0, math.inf, -y, -y",
    "dual_ridge": "1.0 / weight if weight > 0.0 else 0.0",
}
SCRIPT = '''
import inspect, itertools
import numpy as np
from scipy.optimize import minimize
import s3vm_lib
from s3vm_lib.branch_and_bound import solve_branch_and_bound
from s3vm_lib.checks import brute_force, stationarity
from s3vm_lib.losses import LabeledLoss, UnlabeledLoss
from s3vm_lib.objective import Problem

loss = LabeledLoss("squared")
f = np.linspace(-2.5, 2.5, 51)
u = loss.effective
assert u.name == "symmetric_squared"
np.testing.assert_allclose(u.value(f), np.minimum(loss.value(1, f), loss.value(-1, f)))
np.testing.assert_allclose(u.convex_part(f)[0] + u.concave_part(f)[0], u.value(f))
assert np.all(np.diff(u.convex_part(f)[1]) >= -1e-12)

rng = np.random.default_rng(0)
X = rng.normal(size=(8, 2))
K = np.exp(-np.square(X[:, None] - X).sum(2))
t = np.array([1.0, -1.0, 0, 0, 0, 0, 0, 0])
problem = Problem(labeled_loss=loss, unlabeled_loss=u, C=2.0, C_star=0.3)

def least(labels):
    """The convex problem of one labeling, by a program that knows nothing of ours."""
    weight = np.where(t != 0, 2.0, 0.3)
    def J(v):
        out = K @ v[:-1] + v[-1]
        return 0.5 * v[:-1] @ K @ v[:-1] + weight @ (0.5 * (1 - labels * out) ** 2)
    return minimize(J, np.zeros(9), method="BFGS", options={"gtol": 1e-9}).fun

truth = min(
    least(np.array([1.0, -1.0, *labels])) for labels in itertools.product((-1, 1), repeat=6)
)
assert abs(brute_force(problem, K, t).objective - truth) < 1e-7 * truth

taken = []
for name in s3vm_lib.__all__:
    estimator = getattr(s3vm_lib, name)
    if "labeled_loss" not in getattr(estimator, "_parameter_constraints", {}):
        continue
    y = np.array([0, 1, 0, 1, -1, -1, -1, -1]) if name != "GKMRegressor" else X[:, 0]
    try:
        estimator(labeled_loss="squared").fit(X, y)
    except ValueError as error:
        assert "labeled_loss" in str(error) and "'squared'" in str(error), (name, error)
    else:
        taken.append(name)
assert taken == TAKEN, taken
if not TAKEN:
    try:
        solve_branch_and_bound(problem, K, t)
    except ValueError as error:
        assert "'squared'" in str(error)
    else:
        raise AssertionError("solve_branch_and_bound took a loss without a proof")
else:
    found = solve_branch_and_bound(problem, K, t)
    assert abs(found.objective - truth) < 1e-5 * truth and found.lower_bound <= truth * (1 + 1e-9)
print("right")
'''


def copy_with_new_loss(folder, proved=False, forget=None):
    package = folder / "s3vm_lib"
    shutil.copytree(ROOT / "s3vm_lib", package, ignore=shutil.ignore_patterns("__pycache__"))
    path = package / "losses.py"
    text = path.read_text("utf-8")
    text = text.replace(
        "\n}\nLABELED_LOSSES", '\n    "squared": Facts(math.inf),\n}\nLABELED_LOSSES'
    )
    codes = "EPSILON_INSENSITIVE = range(7)"
    assert text.count(codes) == 1
    text = text.replace(codes, "EPSILON_INSENSITIVE, SQUARED = range(8)")
    for name, value in BRANCHES.items():
        if name != forget:
            start = text.index(f"def {name}(")
            place = text.index("    return math.nan", start)
            text = (
                text[:place] + f"    if code == SQUARED:\n        return {value}\n" + text[place:]
            )
    path.write_text(text, "utf-8")
    if proved:
        path = package / "branch_and_bound" / "_relaxation.py"
        text = path.read_text("utf-8")
        assert text.count("PROVED = {\n") == 1
        path.write_text(text.replace("PROVED = {\n", 'PROVED = {\n    "squared",\n'), "utf-8")
    own = {"NUMBA_DISABLE_JIT": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # no compiling
    return {**os.environ, "PYTHONPATH": str(folder), **own}


def run(*arguments, cwd, environment):
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("taken", [[], ["BranchBoundS3VM"]])
def test_a_new_loss_is_right_or_refused_by_name(tmp_path, taken):
    environment = copy_with_new_loss(tmp_path, proved=bool(taken))
    script = SCRIPT.replace("TAKEN", repr(taken))
    result = run("-c", script, cwd=tmp_path, environment=environment)
    assert result.stdout.endswith("right\n"), result.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("forgotten", [None, "labeled_curvature", "dual_cost"])
def test_a_forgotten_branch_is_not_silent_and_a_whole_loss_passes(tmp_path, forgotten):
    environment = copy_with_new_loss(tmp_path, forget=forgotten)
    shutil.copy(ROOT / "tests" / "test_losses.py", tmp_path)
    options = ["-q", "-p", "no:cacheprovider", "-k", "squared-None or no_loss"]
    command = ["-m", "pytest", *options, "test_losses.py"]
    result = run(*command, cwd=tmp_path, environment=environment)
    failed = re.search(r"\d+ failed", result.stdout)
    assert "passed" in result.stdout and bool(failed) == bool(forgotten), result.stdout[-2000:]
