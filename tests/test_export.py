"""Models as objects of scikit-learn and as files of LIBSVM: the same outputs on new rows."""

import functools
import io
import pickle
import shutil
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import s3vm_lib
from benchmarks.equality import FEWER, problem
from s3vm_lib.calibration import CalibratedS3VM
from s3vm_lib.exchange.export import register_converters, to_sklearn, write_libsvm_model
from s3vm_lib.model_selection import S3VMSearchCV

KERNELS = ("linear", "poly", "rbf", "laplacian")
MODELS = [
    (name, kernel)
    for name in s3vm_lib.__all__
    if hasattr(getattr(s3vm_lib, name), "fit") and name != "SelfTrainingKNN"
    for kernel in (KERNELS if "kernel" in getattr(s3vm_lib, name)().get_params() else (None,))
]
NEW = 2 * np.random.default_rng(1).normal(size=(2000, 4))


@functools.cache
def fitted(name, kernel, n_classes=2, form=np.asarray, **options):
    X, y, truth = problem(0, n_classes)
    if name == "GKMRegressor":
        y = np.where(y < 0, np.nan, X[:, 0] + 0.1 * truth)
    given = FEWER.get(name, {}) | ({"kernel": kernel} if kernel else {}) | options
    given |= {"vote": False} if name == "S3VC" else {}
    given |= {"random_state": 0} if name in ("S3VC", "SafeS3VM") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(s3vm_lib, name)(**given).fit(form(X), y)


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def tolerance(name, kernel):
    """Relative error: the library computes random features in single precision.

    Frequencies of the laplacian kernel have heavy tails, and large angles few digits.
    """
    if name not in ("FRS3VM", "TSGS3VM") or kernel == "linear":
        return 1e-10
    return 2e-4 if kernel == "laplacian" else 1e-5


@pytest.mark.parametrize(
    ("n_classes", "form"), [(2, np.asarray), (2, sp.csr_matrix), (3, np.asarray)]
)
@pytest.mark.parametrize(("name", "kernel"), MODELS)
def test_scikit_learn_predicts_the_same(name, kernel, form, n_classes):
    model = fitted(name, kernel, n_classes, form)
    streams = name in ("FRS3VM", "TSGS3VM") and kernel != "linear"
    if streams and kernel == "poly":
        with pytest.raises(ValueError, match="rbf or laplacian, got 'poly'"):
            to_sklearn(model)
        return
    twin = pickle.loads(pickle.dumps(to_sklearn(model)))
    assert type(twin).__module__.startswith("sklearn.")
    dense = getattr(model, "support_vectors_", None) is not None and not sp.issparse(
        model.support_vectors_
    )
    Z = NEW if dense else form(NEW)  # SVC takes rows in the form of its support vectors
    f, g = scores(model, Z), scores(twin, Z)
    assert np.abs(f - g).max() <= tolerance(name, kernel) * np.abs(f).max()
    if not streams and name != "GKMRegressor":
        assert np.array_equal(model.predict(Z), twin.predict(Z))
        assert np.array_equal(model.classes_, twin.classes_)


def test_labels_of_unequal_classes_are_not_exchanged():
    rng = np.random.default_rng(0)
    y = np.array(["rare"] * 4 + ["usual"] * 36)
    X = rng.normal(size=(40, 3)) + 2.0 * (y == "rare")[:, None]
    model = s3vm_lib.SVM(C=10.0).fit(X, y, unlabeled_mask=np.zeros(40, dtype=bool))
    assert np.array_equal(to_sklearn(model).predict(X), model.predict(X))


def test_what_chooses_a_machine_exports_that():
    X, y, _ = problem(0, 2)
    search = S3VMSearchCV(s3vm_lib.SVM(), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    assert np.allclose(to_sklearn(search).decision_function(X), search.decision_function(X))
    wide = X * [1, 1e3, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = s3vm_lib.S3VC(vote=False, random_state=0).fit(wide, y)
    twin = to_sklearn(model)
    assert type(twin).__name__ == "Pipeline" and np.array_equal(
        twin.predict(wide), model.predict(wide)
    )


def test_votes_of_several_machines_are_not_one_model():
    X, y, _ = problem(0, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = s3vm_lib.S3VC(random_state=0).fit(X, y)
    assert model.weights_.max() < 1
    with pytest.raises(
        ValueError, match=r"model must be one machine, got the votes of 8: fit S3VC"
    ):
        to_sklearn(model)


def test_a_kernel_matrix():
    X, y, _ = problem(0, 2)
    model = s3vm_lib.SVM(kernel="precomputed").fit(X @ X.T, y)
    K = NEW[:50] @ X.T
    assert np.allclose(to_sklearn(model).decision_function(K), model.decision_function(K))


def test_what_cannot_be_exported_says_why():
    X, y, _ = problem(0, 2)
    model = s3vm_lib.SafeS3VM().fit(X, y)
    model.taken_ = "vote"
    for one, message in (
        (model, "votes"),
        (CalibratedS3VM(s3vm_lib.SVM()).fit(X, y), "estimator_"),
        (s3vm_lib.SelfTrainingKNN().fit(X, y), "transduction_"),
    ):
        with pytest.raises(ValueError, match=message):
            to_sklearn(one)


# --- LIBSVM ---------------------------------------------------------------------------------------


def outputs_of(text, X):
    """Outputs for the first label of a model file, by the definition in LIBSVM's README."""
    head, _, body = text.partition("SV\n")
    facts = dict(line.split(" ", 1) for line in head.splitlines())
    gamma, degree = float(facts.get("gamma", 0)), int(facts.get("degree", 0))
    f = np.full(len(X), -float(facts["rho"]))
    for line in body.splitlines():
        beta, *pairs = line.split()
        v = np.zeros(X.shape[1])
        for pair in pairs:
            column, value = pair.split(":")
            v[int(column) - 1] = float(value)
        kernels = {
            "linear": lambda v: X @ v,
            "polynomial": lambda v: (gamma * (X @ v) + float(facts["coef0"])) ** degree,
            "rbf": lambda v: np.exp(-gamma * np.sum((X - v) ** 2, axis=1)),
        }
        f += float(beta) * kernels[facts["kernel_type"]](v)
    assert sum(map(int, facts["nr_sv"].split())) == int(facts["total_sv"]) == len(body.splitlines())
    return f, list(map(int, facts["label"].split()))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("name", ["SVM", "QNS3VM", "ILS3VM", "FRS3VM"])
def test_libsvm_predicts_the_same(name, kernel, form, tmp_path):
    model = fitted(name, kernel, form=form)
    if name == "FRS3VM" and kernel != "linear":
        with pytest.raises(ValueError, match="random features"):
            write_libsvm_model(io.StringIO(), model)
        return
    write_libsvm_model(tmp_path / "model", model)
    f, labels = outputs_of((tmp_path / "model").read_text(), NEW)
    wanted = model.decision_function(form(NEW))
    assert np.abs(f - wanted).max() <= 1e-10 * np.abs(wanted).max() and labels == [1, 0]
    if shutil.which("svm-predict"):
        dump_svmlight_file(NEW[:500], np.zeros(500), str(tmp_path / "rows"), zero_based=False)
        program = ["svm-predict", tmp_path / "rows", tmp_path / "model", tmp_path / "answers"]
        subprocess.run(program, check=True, capture_output=True)
        answers = np.loadtxt(tmp_path / "answers")
        assert np.array_equal(answers, model.predict(form(NEW[:500])))


def test_libsvm_has_no_such_model():
    X, y, truth = problem(0, 2)
    for model, message in (
        (fitted("SVM", "rbf", n_classes=3), "two classes that are whole numbers"),
        (fitted("SVM", "laplacian"), "got 'laplacian'"),
        (s3vm_lib.SVM().fit(X, np.where(truth, "a", "b"), unlabeled_mask=y < 0), "whole numbers"),
        (fitted("GKMRegressor", "rbf"), "two classes"),
    ):
        with pytest.raises(ValueError, match=message):
            write_libsvm_model(io.StringIO(), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaled = s3vm_lib.S3VC(scale=True, vote=False, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="no scaler"):
        write_libsvm_model(io.StringIO(), scaled)


# --- ONNX -----------------------------------------------------------------------------------------


def run(model, X):
    """Outputs of onnxruntime for a model, converted for rows of the type of X."""
    skl2onnx, runtime = pytest.importorskip("skl2onnx"), pytest.importorskip("onnxruntime")
    register_converters()
    graph = skl2onnx.to_onnx(model, X[:1])
    session = runtime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: X})


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("name", "kernel"), MODELS)
def test_onnxruntime_predicts_the_same(name, kernel, n_classes):
    model = fitted(name, kernel, n_classes)
    streams = name in ("FRS3VM", "TSGS3VM") and kernel != "linear"
    if streams and kernel == "poly":
        return
    *label, found = run(model, NEW)
    wanted = scores(model, NEW)
    error = np.abs(found.reshape(wanted.shape) - wanted).max()
    assert error <= tolerance(name, kernel) * np.abs(wanted).max()
    if label and not streams:
        assert np.array_equal(label[0], model.predict(NEW))


def test_names_scalers_and_single_precision_in_onnx():
    X, y, truth = problem(0, 3)
    names = np.array(["ant", "bee", "cat"], dtype=object)[truth]
    names[y < 0] = None
    wide = X * [1, 1e3, 1, 1] + [0, 1e4, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = s3vm_lib.S3VC(scale=True, vote=False, random_state=0).fit(wide, names)
        pipeline = make_pipeline(StandardScaler(), s3vm_lib.SVM()).fit(wide, names)
    assert model.scaler_ is not None
    new = NEW * [1, 1e3, 1, 1] + [0, 1e4, 0, 0]
    assert np.array_equal(run(model, new)[0], model.predict(new))
    assert np.array_equal(run(pipeline, new)[0], pipeline.predict(new))
    found = run(model, new.astype(np.float32))[1]
    wanted = model.decision_function(new.astype(np.float32))
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
