"""Which settings a search tries, and which of them can share their preparation."""

from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_array

from s3vm_lib.base.preparation import late_parameters
from s3vm_lib.kernels import resolve_gamma
from s3vm_lib.model_selection._labeled import PreferSmallest, rank

TIES = ("C", "C_star", "gamma")


class Candidate(NamedTuple):
    """One setting of one estimator."""

    name: str | None  # of the estimator; None where there is but one
    settings: dict

    @property
    def params(self):
        """Return the setting as ``cv_results_`` shows it."""
        return self.settings if self.name is None else {"estimator": self.name, **self.settings}


def default_grid(estimator, X, codes, weight):
    """Make a grid of C, C* and γ around the values that the defaults stand for.

    C is 0.1, 1, 10 or 100, C* 0.01, 0.1 or 1 times the value that gives the unlabeled rows together
    the weight of the labeled ones, γ 0.1, 1 or 10 times that of ``gamma="scale"``; what the
    estimator does not have is left out, and γ where the kernel has none.
    """
    known = estimator.get_params(deep=False)
    if "C" not in known:
        raise ValueError(f"param_grid must be given for {type(estimator).__name__}, which has no C")
    grid = {}
    if known.get("kernel") in ("rbf", "laplacian", "poly"):
        rows = check_array(X, accept_sparse="csr")
        scale = resolve_gamma("scale", rows, weight)
        grid["gamma"] = [0.1 * scale, scale, 10.0 * scale]
    mass, unlabeled = weight[codes >= 0].sum(), weight[codes < 0].sum()
    grids = []
    # C* is a multiple of C, so that each C has a grid of its own.
    for C in (0.1, 1.0, 10.0, 100.0):
        one = {"C": [C], **grid}
        if "C_star" in known and unlabeled > 0:
            one["C_star"] = [share * C * mass / unlabeled for share in (0.01, 0.1, 1.0)]
        grids.append(one)
    return grids


def candidates(estimators, param_grid, X, codes, weight):
    """List every setting of every estimator, in the order of the grid.

    Parameters
    ----------
    estimators : dict of (str or None) to estimator
    param_grid : dict, list of dict, or None
        With several estimators each takes the parameters that it has.
    X, codes, weight
        What `default_grid` needs.

    Returns
    -------
    list of Candidate

    Raises
    ------
    ValueError
        If no estimator has one of the parameters.
    """
    grids = [param_grid] if isinstance(param_grid, Mapping) else param_grid
    found = {}  # by their hash: arrays answer no comparison with one word
    for name, estimator in estimators.items():
        known = estimator.get_params()
        own = default_grid(estimator, X, codes, weight) if grids is None else grids
        if len(estimators) > 1 and grids is not None:
            own = [{k: v for k, v in grid.items() if k in known} for grid in grids]
        for settings in ParameterGrid(own):
            unknown = sorted(set(settings) - set(known))
            if unknown:
                raise ValueError(
                    f"param_grid names {unknown}, which are not among the parameters of "
                    f"{type(estimator).__name__}: {sorted(known)}"
                )
            found.setdefault(joblib.hash((name, settings)), Candidate(name, settings))
    # With several estimators a name must belong to one of them, at least.
    for grid in grids or []:
        lost = [k for k in grid if not any(k in e.get_params() for e in estimators.values())]
        if lost:
            raise ValueError(f"param_grid names {lost}, which none of {list(estimators)} has")
    return list(found.values())


def groups(found, estimators, exact=True):
    """Group candidates that differ in nothing that is read before the solver starts.

    With ``exact=False`` they come in an order in which each may go on from the one before.

    Returns
    -------
    list of (estimator, list of (int, dict))
        A clone with the common parameters, and the position and other parameters of each candidate.
    """
    together = {}
    for position, (name, settings) in enumerate(found):
        late = late_parameters(estimators[name])
        early = {k: v for k, v in settings.items() if k not in late}
        members = together.setdefault((name, joblib.hash(early)), (early, []))[1]
        members.append((position, {k: v for k, v in settings.items() if k in late}))
    if not exact:
        for _, members in together.values():
            members.sort(key=_rising)
    return [
        (clone(estimators[name]).set_params(**clone(early, safe=False)), members)
        for (name, _), (early, members) in together.items()
    ]


def _rising(member):
    """Sort by the settings apart from C*, then by C*: each may go on from the one before."""
    settings = dict(member[1])
    C_star = settings.pop("C_star", None)
    return repr(sorted(settings.items())), np.inf if C_star is None else C_star


def _ties(found, estimators):
    """Return the names of what `PreferSmallest` compares, and the values in each setting."""
    given = {name: estimator.get_params() for name, estimator in estimators.items()}
    whole = []
    for name, settings in found:
        known = given[name]
        whole.append({"C_star": 0.0, **{k: known[k] for k in TIES if k in known}, **settings})
    varied = [k for k in TIES if any(k in candidate.settings for candidate in found)]
    return [k for k in varied if all(isinstance(s.get(k, ""), Real | None) for s in whole)], whole


def precedence(found, estimators):
    """Return a key of each setting; of settings that tie, `smallest` takes the least."""
    named, whole = _ties(found, estimators)
    return [(*(rank(s[k]) for k in named), position) for position, s in enumerate(whole)]


def smallest(found, estimators):
    """Make a `PreferSmallest` of those of C, C_star and gamma that all settings have as numbers.

    An estimator without ``C_star`` counts as one with 0. Where the results hold the ``stability``,
    it decides before.
    """
    named, whole = _ties(found, estimators)
    rule = PreferSmallest(*named)

    def choose(results):
        mean = results["mean_test_score"]
        if "stability" in results and np.isfinite(mean).any():
            tied = mean >= np.nanmax(mean) - rule.tolerance
            mean = np.where(tied, results["stability"], np.nan)
        return rule({**results, "params": whole, "mean_test_score": mean})

    return choose
