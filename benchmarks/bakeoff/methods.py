"""The methods: every estimator of the library, and scikit-learn's; one line makes a new one.

An estimator of ``s3vm_lib.__all__`` joins by itself, with its defaults and, where it has kernels,
also with the linear one. A candidate default is a line in `VARIANTS`.
"""

import importlib
import inspect
import itertools
from dataclasses import dataclass, field
from typing import Any

C = (0.1, 1.0, 10.0, 100.0)
GRAPH = {"C": C, "C_graph": (1.0, 10.0, 100.0)}
#: Grids of the mode "search"; ties are broken in the order of the parameters, smallest value first.
GRIDS = {
    "LapSVM": GRAPH,
    "GKM": GRAPH,
    "BGS3VM": GRAPH,
    "SelfTrainingKNN": {"n_neighbors": (1, 3, 5)},
}


@dataclass(frozen=True)
class Method:
    """One line of the registry.

    Parameters
    ----------
    name : str
        As in the tables; what stands in brackets is what differs from the defaults.
    cls : str
        ``module:class``.
    params : dict
        Parameters that are not the defaults.
    kernel : {"rbf", "linear", "other"}, default="other"
        It decides which SVM the method is compared with: the linear one, or that with the default
        kernel.
    supervised : bool, default=False
        Whether it is given the labeled rows alone.
    grid : dict of str to tuple, default={}
        For the mode "search"; without a grid there is no such row.
    wrap : str, default=""
        ``module:class`` of a meta-estimator around it.
    told : bool, default=False
        Whether it is told the true class shares of the unlabeled rows: hindsight, for comparison.
    """

    name: str
    cls: str
    params: dict[str, Any] = field(default_factory=dict)
    kernel: str = "other"
    supervised: bool = False
    grid: dict[str, tuple] = field(default_factory=dict)
    wrap: str = ""
    told: bool = False

    @property
    def baseline(self):
        """The supervised SVM that this one has to beat."""
        return "SVM[linear]" if self.kernel == "linear" else "SVM"

    @property
    def type(self):
        """The class."""
        return _named(self.cls)

    def build(self, random_state):
        """The estimator, with a seed where it takes one."""
        params = dict(self.params)
        if "random_state" in inspect.signature(self.type).parameters:
            params["random_state"] = random_state
        model = self.type(**params)
        return _named(self.wrap)(model) if self.wrap else model


def _named(path):
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def variant(name, label, /, told=False, **params):
    """A candidate: an estimator of the library with other parameters, named in brackets."""
    import s3vm_lib

    defaults = inspect.signature(getattr(s3vm_lib, name)).parameters
    kernel = params.get("kernel", defaults["kernel"].default if "kernel" in defaults else "other")
    if name in ("MultiSwitchTSVM", "DAS3VM"):
        kernel = "linear"
    grid = GRIDS.get(name, {"C": C} if "C" in defaults else {})
    title = f"{name}[{label}]" if label else name
    return Method(title, f"s3vm_lib:{name}", params, kernel, grid=grid, told=told)


def _ours():
    import s3vm_lib

    for name in s3vm_lib.__all__:
        cls = getattr(s3vm_lib, name)
        # A regressor of the classes' numbers is the classifier with another loss.
        if inspect.isclass(cls) and hasattr(cls, "predict") and not name.endswith("Regressor"):
            yield variant(name, "")
            kernel = inspect.signature(cls).parameters.get("kernel")
            if kernel is not None and kernel.default != "linear":
                yield variant(name, "linear", kernel="linear")


def _theirs():
    svm, neighbors = {"C": C}, {"n_neighbors": (1, 3, 5)}
    spread = "sklearn.semi_supervised:"
    yield Method("sk.SVC", "sklearn.svm:SVC", {}, "rbf", True, svm)
    yield Method("sk.LinearSVC", "sklearn.svm:LinearSVC", {}, "linear", True, svm)
    yield Method(
        "sk.LogisticRegression", "sklearn.linear_model:LogisticRegression", {}, "linear", True, svm
    )
    yield Method(
        "sk.KNeighbors", "sklearn.neighbors:KNeighborsClassifier", {}, "other", True, neighbors
    )
    yield Method("sk.RandomForest", "sklearn.ensemble:RandomForestClassifier", {}, "other", True)
    for kernel, grid in (
        ("knn", {"n_neighbors": (3, 7, 15)}),
        ("rbf", {"gamma": (0.01, 0.1, 1.0, 20.0)}),
    ):
        for name in ("LabelSpreading", "LabelPropagation"):
            params = {"kernel": kernel}
            yield Method(f"sk.{name}[{kernel}]", spread + name, params, "other", grid=grid)
    yield Method(
        "sk.SelfTraining[SVC]",
        "sklearn.svm:SVC",
        {"probability": True},
        "rbf",
        wrap=spread + "SelfTrainingClassifier",
    )
    yield Method(
        "sk.SelfTraining[logistic]",
        "sklearn.linear_model:LogisticRegression",
        {},
        "linear",
        wrap=spread + "SelfTrainingClassifier",
    )
    yield Method("ten-minute user", "benchmarks.stories:TenMinuteUser")
    for title, name in (
        ("modssc.TSVM", "ModsscTSVM"),
        ("modssc.S4VM", "ModsscS4VM"),
        ("sslearn.TriTraining", "SslearnTriTraining"),
        ("graphlearning.Laplace", "GraphLaplace"),
        ("graphlearning.Poisson", "GraphPoisson"),
    ):
        yield Method(title, f"benchmarks.bakeoff.neighbours:{name}")


VARIANTS = (
    # What the class ratio is worth.
    variant("QNS3VM", "labels", balance="labels"),
    variant("QNS3VM", "told", told=True),
    variant("QNS3VM", "no balance", balance=None),
    variant("QNS3VM", "powered", balance="powered"),
    variant("QNS3VM", "share", balance_tol=0.01),
    variant("QNS3VM", "share, labels", balance_tol=0.01, balance="labels"),
    variant("QNS3VM", "share, told", balance_tol=0.01, told=True),
    variant("CCCPS3VM", "labels", balance="labels"),
    variant("CCCPS3VM", "told", told=True),
    # Candidates for defaults.
    variant("SVM", "C=10", C=10.0),
    variant("SVM", "linear, C=10", kernel="linear", C=10.0),
    variant("QNS3VM", "C=10", C=10.0),
    variant("QNS3VM", "C=10, share", C=10.0, balance_tol=0.01),
    variant("QNS3VM", "reconsider", reconsider=True),
    variant("QNS3VM", "linear, reconsider", kernel="linear", reconsider=True),
    variant("QNS3VM", "linear, share", kernel="linear", balance_tol=0.01),
    variant("QNS3VM", "linear, labels", kernel="linear", balance="labels"),
    variant("QNS3VM", "linear, told", told=True, kernel="linear"),
    variant("QNS3VM", "linear, share, told", told=True, kernel="linear", balance_tol=0.01),
    variant("LapSVM", "normalized", normalized=True),
    variant("LapSVM", "C_graph=labels", C_graph="labels"),
    variant("ILS3VM", "C_star=0.001", C_star=0.001),
    variant("GKM", "C_graph=labels", C_graph="labels"),
)


def registry():
    """All methods by name.

    Returns
    -------
    dict of str to Method
    """
    return {one.name: one for one in itertools.chain(_ours(), _theirs(), VARIANTS)}
