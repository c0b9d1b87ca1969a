"""Turn a fitted model into one of scikit-learn, or into a file of LIBSVM."""

from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.dummy import DummyClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR
from sklearn.utils.validation import check_is_fitted


def to_sklearn(model):
    """Return an object of scikit-learn with the same outputs as a fitted model.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this library. Of `S3VC`, `SafeS3VM` and `S3VMSearchCV` the machine
        that predicts is exported.

    Returns
    -------
    estimator
        `~sklearn.svm.LinearSVC` for linear machines, `~sklearn.svm.SVC` for other kernels, a
        pipeline with `~sklearn.kernel_approximation.RBFSampler` for random features, and with the
        scaler of `S3VC`; regressors become `~sklearn.svm.SVR` and `~sklearn.svm.LinearSVR`. Of
        more than two classes, `~sklearn.multiclass.OneVsRestClassifier`. It predicts; its
        parameters for a fit mean nothing.

    Raises
    ------
    ValueError
        If scikit-learn has no such object: votes of a pool, probabilities, random features of
        polynomial kernels, and neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> from s3vm_lib import SVM
    >>> from s3vm_lib.exchange.export import to_sklearn
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> model = SVM().fit(X, [0, 0, 1, 1], unlabeled_mask=[False] * 4)
    >>> twin = to_sklearn(model)
    >>> bool(np.allclose(twin.decision_function(X), model.decision_function(X)))
    True
    """
    classes, scaler, machine = _machine(model)
    dual, coef, problem = _parts(machine)
    if hasattr(machine, "stream_") and coef is None:
        sampler, coef = _sampler(machine)
        scaler = sampler if scaler is None else make_pipeline(scaler, sampler)
    intercept = np.atleast_1d(machine.intercept_)
    two = classes if classes is None or intercept.size == 1 else np.array([0, 1])
    if dual is None:
        linear = LinearSVR if classes is None else LinearSVC
        made = [_linear(linear(), w, b, two) for w, b in zip(coef, intercept, strict=True)]
    else:
        kind = SVR if classes is None else SVC
        made = [
            _kernel_machine(kind, problem.kernel, machine, beta, b, two)
            for beta, b in zip(dual, intercept, strict=True)
        ]
    found = made[0]
    if len(made) > 1:
        # A fit to the classes alone makes the encoder of labels.
        found = OneVsRestClassifier(DummyClassifier()).fit(np.zeros((classes.size, 1)), classes)
        found.estimator, found.estimators_ = made[0], made
        found.n_features_in_ = machine.n_features_in_
    return found if scaler is None else make_pipeline(scaler, found)


def write_libsvm_model(file, model):
    """Write the model file that ``svm-predict`` of LIBSVM reads.

    Parameters
    ----------
    file : str, Path or text file
    model : estimator
        As in `to_sklearn`: a classifier of two classes, whose labels are whole numbers, without a
        scaler, with the kernel linear, poly or rbf. LIBSVM scales rows by a program of its own.

    Raises
    ------
    ValueError
        If LIBSVM has no such model.
    """
    classes, scaler, machine = _machine(model)
    dual, coef, problem = _parts(machine)
    kernel = problem.kernel
    if classes is None or classes.size != 2 or classes.dtype.kind not in "iu":
        raise ValueError(f"model must have two classes that are whole numbers, got {classes}")
    if scaler is not None:
        raise ValueError("model must have no scaler: scale the rows first, S3VC(scale=False)")
    if hasattr(machine, "stream_") and coef is None:
        raise ValueError("model must have a kernel machine, got random features")
    if dual is None:  # one support vector, w itself
        name, beta, rows = "linear", np.ones(1), coef
    else:
        name, beta, rows = kernel.name, dual[0] * kernel.sigma_f**2, _vectors(machine)
    if name not in ("linear", "poly", "rbf"):
        raise ValueError(f"model must have the kernel linear, poly or rbf, got {name!r}")
    name = {"poly": "polynomial"}.get(name, name)
    order = np.argsort(beta < 0, kind="stable")  # those of the first label first
    lines = ["svm_type c_svc", f"kernel_type {name}"]
    lines += [f"degree {kernel.degree}"] if name == "polynomial" else []
    lines += [] if name == "linear" else [f"gamma {float(kernel.gamma)!r}"]
    lines += [f"coef0 {float(kernel.coef0)!r}"] if name == "polynomial" else []
    # LIBSVM gives rows above 0 the first label, and subtracts rho.
    n_positive = int(np.sum(beta >= 0))
    lines += [
        "nr_class 2",
        f"total_sv {beta.size}",
        f"rho {-float(np.ravel(machine.intercept_)[0])!r}",
        f"label {classes[1]} {classes[0]}",
        f"nr_sv {n_positive} {beta.size - n_positive}",
        "SV",
    ]
    rows = sp.csr_matrix(rows)
    for i in order:
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        pairs = zip(rows.indices[part] + 1, rows.data[part], strict=True)
        lines.append(" ".join([repr(float(beta[i])), *(f"{j}:{float(v)!r}" for j, v in pairs)]))
    text = "\n".join(lines) + "\n"
    file.write(text) if hasattr(file, "write") else Path(file).write_text(text)


def _machine(model):
    """Return the classes, a scaler and the machine that predicts; classes None for numbers."""
    check_is_fitted(model)
    name = type(model).__name__
    if hasattr(model, "best_estimator_"):
        return _machine(model.best_estimator_)
    if hasattr(model, "model_"):  # S3VC
        if np.max(model.weights_) < 1:
            raise ValueError(
                f"model must be one machine, got the votes of {model.weights_.size}: fit "
                "S3VC(vote=False)"
            )
        _, inner, machine = _machine(model.model_)
        scaler = model.scaler_ if inner is None else make_pipeline(model.scaler_, inner)
        return model.classes_, scaler, machine
    if hasattr(model, "taken_"):  # SafeS3VM
        if model.taken_ == "vote":
            raise ValueError("model must be one machine, got the votes of SafeS3VM's pool")
        taken = model.estimator_ if model.taken_ == "estimator" else model.baseline_
        return (model.classes_, *_machine(taken)[1:])
    if not hasattr(model, "intercept_"):
        advice = {
            "CalibratedS3VM": ": export its estimator_, whose outputs it calibrates",
            "SelfTrainingKNN": ": fit a KNeighborsClassifier to transduction_",
        }
        raise ValueError(f"model must be a machine with outputs, got {name}{advice.get(name, '')}")
    return getattr(model, "classes_", None), None, model


def _parts(machine):
    """Return the dual coefficients or those of the columns, each (k, ·), and a problem."""
    problem = machine.problem_
    problem = problem[0] if isinstance(problem, list) else problem
    coef = np.atleast_2d(machine.coef_) if hasattr(machine, "coef_") else None
    dual = None
    if coef is None and hasattr(machine, "dual_coef_"):
        dual = np.atleast_2d(machine.dual_coef_)
    return dual, coef, problem


def _vectors(machine):
    vectors = machine.support_vectors_
    return vectors if sp.issparse(vectors) else np.ascontiguousarray(vectors, dtype=float)


def _linear(made, coef, intercept, classes):
    """Fill in a linear machine."""
    made.n_features_in_, made.n_iter_, made.intercept_ = coef.size, 0, np.array([intercept])
    made.coef_ = coef if classes is None else coef[None]
    if classes is not None:
        made.classes_ = classes
    return made


def _kernel_machine(kind, kernel, machine, beta, intercept, classes=None):
    """Fill in an SVC or SVR: it is fitted to two rows first, so that it has all of its parts."""
    names = {"laplacian": partial(laplacian_kernel, gamma=float(kernel.gamma))}
    made = kind(
        kernel=names.get(kernel.name, kernel.name),
        gamma=float(kernel.gamma),
        degree=kernel.degree,
        coef0=float(kernel.coef0),
    )
    # LIBSVM predicts after a fit alone: one to two rows makes all the parts.
    size, pairwise = beta.size, kernel.name == "precomputed"
    if pairwise:
        vectors, index, rows = np.empty((0, 0)), machine.support_, np.eye(2)
    else:
        vectors, index = _vectors(machine), np.arange(size)
        rows = vectors[[0, 0]]
    # All that follows replaces what this fit found.
    made.fit(rows, [0, 1])
    made.n_features_in_ = machine.n_features_in_
    made.shape_fit_ = (machine.n_features_in_,) * 2 if pairwise else vectors.shape
    made.support_ = index.astype(np.int32)
    made.support_vectors_ = vectors
    made._n_support = np.array([size, 0], dtype=np.int32)
    beta, intercept = beta[None] * kernel.sigma_f**2, np.array([float(intercept)])
    if kernel.name == "laplacian":
        made._BaseLibSVM__Xfit = vectors
        made.shape_fit_, made.support_vectors_ = (size, size), np.empty((0, 0))
    if sp.issparse(vectors) and kernel.name != "laplacian":
        beta = sp.csr_matrix((beta[0], np.arange(size), [0, size]), shape=(1, size))
    # Of two classes LIBSVM's sign is the other one: it counts the first class as positive.
    sign = -1.0 if classes is not None else 1.0
    made.dual_coef_, made._dual_coef_ = beta, sign * beta
    made.intercept_, made._intercept_ = intercept, sign * intercept
    if classes is not None:
        made.classes_ = classes
    return made


def _sampler(machine):
    """Return random features as scikit-learn draws them, and the coefficients, (k, m)."""
    stream, alpha = machine.stream_, np.asarray(machine.feature_coef_, dtype=float)
    if stream.kernel.name not in ("rbf", "laplacian"):
        raise ValueError(
            f"model must have features of the kernel rbf or laplacian, got {stream.kernel.name!r}"
        )
    weights, offsets, coefs = [], [], []
    for t in range(alpha.shape[1]):
        block = stream.block(t)
        W, b = 2 * np.pi * block.W.astype(float), 2 * np.pi * block.b.astype(float)
        if b.size:
            weights, offsets = [*weights, W], [*offsets, b]
        else:  # cosines, then sines
            weights += [W, W]
            offsets += [np.zeros(W.shape[1]), np.full(W.shape[1], -np.pi / 2)]
        coefs.append(alpha[:, t] * block.scale)
    sampler = RBFSampler(n_components=alpha.shape[1] * alpha.shape[2])
    sampler.random_weights_ = np.concatenate(weights, axis=1)
    sampler.random_offset_ = np.concatenate(offsets)
    sampler.n_features_in_ = stream.n_dims
    sampler._n_features_out = sampler.n_components
    return sampler, np.concatenate(coefs, axis=1) / np.sqrt(2.0 / sampler.n_components)


def register_converters():
    """Register converters for the estimators of this library with skl2onnx.

    After this ``skl2onnx.to_onnx(model, X[:1])`` converts each model that `to_sklearn` converts,
    alone or in a pipeline. The graph computes in double precision, with the scaler of `S3VC`
    inside. Its outputs are ``label`` and ``scores``, the decision function, (n, 1) for two classes;
    of regressors ``variable``.

    Raises
    ------
    ImportError
        If skl2onnx is not installed.
    """
    from skl2onnx import update_registered_converter

    import s3vm_lib

    for name in s3vm_lib.__all__:
        kind = getattr(s3vm_lib, name)
        if isinstance(kind, type) and hasattr(kind, "fit"):
            update_registered_converter(
                kind, f"S3vmLib{name}", _onnx_shapes, _onnx_graph, overwrite=True
            )


def _onnx_shapes(operator):
    """Tell skl2onnx the types of the outputs."""
    from skl2onnx.common import data_types

    classes, _, machine = _machine(operator.raw_operator)
    n = operator.inputs[0].get_first_dimension()
    scores = data_types.DoubleTensorType([n, np.atleast_1d(machine.intercept_).size])
    if classes is None:
        operator.outputs[0].type = scores
        return
    whole = np.asarray(classes).dtype.kind in "iub"
    label = data_types.Int64TensorType if whole else data_types.StringTensorType
    operator.outputs[0].type, operator.outputs[1].type = label([n]), scores


def _onnx_graph(scope, operator, container):
    """Add the graph of a machine to that of skl2onnx."""
    from onnx import TensorProto
    from skl2onnx.algebra import onnx_ops

    def op(name, *inputs, **options):
        made = getattr(onnx_ops, f"Onnx{name}")
        return made(*inputs, op_version=container.target_opset, **options)

    classes, scaler, machine = _machine(operator.raw_operator)
    dual, coef, problem = _parts(machine)
    x = op("Cast", operator.inputs[0], to=TensorProto.DOUBLE)
    for step in [] if scaler is None else getattr(scaler, "named_steps", {"": scaler}).values():
        x = op("Div", op("Sub", x, step.mean_), step.scale_)
    if hasattr(machine, "stream_") and coef is None:
        sampler, coef = _sampler(machine)
        angles = op("Add", op("MatMul", x, sampler.random_weights_), sampler.random_offset_)
        coef = coef * np.sqrt(2.0 / sampler.n_components)
        values = op("Cos", angles)
    elif dual is None:
        values = x
    else:
        kernel, coef = problem.kernel, dual * problem.kernel.sigma_f**2
        values = _onnx_kernel(op, kernel, x, machine)
    f = op(
        "Add", op("MatMul", values, np.ascontiguousarray(coef.T)), np.atleast_1d(machine.intercept_)
    )
    outputs = [one.full_name for one in operator.outputs]
    if classes is None:
        op("Identity", f, output_names=outputs).add_to(scope, container)
        return
    if coef.shape[0] == 1:
        index = op("Cast", op("Greater", f, np.zeros(1)), to=TensorProto.INT64)
        index = op("Squeeze", index, np.array([1]))
    else:
        index = op("ArgMax", f, axis=1, keepdims=0)
    classes = np.asarray(classes)
    names = classes.astype(np.int64) if classes.dtype.kind in "iub" else classes.astype(str)
    op("Gather", names, index, axis=0, output_names=outputs[:1]).add_to(scope, container)
    op("Identity", f, output_names=outputs[1:]).add_to(scope, container)


def _onnx_kernel(op, kernel, x, machine):
    """Return the node of kernel values between the rows x and the support vectors."""
    if kernel.name == "precomputed":
        return op("Gather", x, machine.support_.astype(np.int64), axis=1)
    V = machine.support_vectors_
    V = np.asarray(V.toarray() if sp.issparse(V) else V, dtype=float)
    if kernel.name in ("linear", "poly"):
        products = op("MatMul", x, np.ascontiguousarray(V.T))
        if kernel.name == "linear":
            return products
        base = op("Add", op("Mul", products, np.array([kernel.gamma])), np.array([kernel.coef0]))
        return op("Pow", base, np.array([float(kernel.degree)]))
    center = V.mean(axis=0)  # so that the squares are those of differences
    x, V = op("Sub", x, center), V - center
    if kernel.name == "rbf":
        squares = op("ReduceSumSquare", x, np.array([1]), keepdims=1)
        products = op("MatMul", x, np.ascontiguousarray(-2 * V.T))
        distances = op("Add", op("Add", products, squares), np.sum(V * V, axis=1))
    else:
        differences = op("Sub", op("Unsqueeze", x, np.array([1])), V)
        distances = op("ReduceSum", op("Abs", differences), np.array([2]), keepdims=0)
    distances = op("Max", distances, np.zeros(1))
    return op("Exp", op("Mul", distances, np.array([-float(kernel.gamma)])))
