"""``partial_fit`` for estimators that learn from batches of labeled and unlabeled rows.

`OnlineS3VM` does what all of them share: classes that are fixed at the first call, a kernel
coefficient that is frozen there, validation of every batch, one machine per two-class problem
that lives on between the calls, and a state that no failed call changes. What a machine is, and
how it takes in a batch, is the business of the subclass. `KeepingS3VM` is for those that keep all
rows, whose labels and weights it has in one `RowTable`.
"""

import copy
import warnings
from contextlib import contextmanager
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from s3vm_lib.base.classifier import BaseS3VM, positives, targets
from s3vm_lib.base.findings import FitWarning
from s3vm_lib.utils.labels import Labels, mark_missing, split_labels, warn_of_marks
from s3vm_lib.utils.limits import check_size
from s3vm_lib.utils.shortcuts import checked_rows_and_labels
from s3vm_lib.utils.threads import using
from s3vm_lib.utils.validation import Rows, checked_weight, validated

_FEW = 10  # rows from whose variance no gamma is taken without a warning


class RowTable(NamedTuple):
    """All rows that a model holds, in the order in which they came. Replaced, never written to."""

    codes: np.ndarray  # class indices, −1 where unlabeled, (n,)
    weight: np.ndarray  # as given, (n,)
    loss_weight: np.ndarray  # times class weights, (n,)
    place: np.ndarray  # in the memory for kernel values; −1: of weight zero, without a place, (n,)
    guess: np.ndarray  # class that a row without a place was given when it came, else −1, (n,)

    @classmethod
    def of(cls, data, codes, weight, first=0):
        """Return the rows of a batch; those of ``data`` get the places from ``first`` on."""
        # Rows of weight zero have neither a place nor a weight in the loss.
        loss_weight, place = np.zeros(codes.size), np.full(codes.size, -1)
        loss_weight[data.rows] = data.loss_weight
        place[data.rows] = np.arange(first, first + data.rows.size)
        return cls(codes, weight, loss_weight, place, np.full(codes.size, -1))

    def extended(self, other):
        """Return the table with the rows of another one."""
        return RowTable(*map(np.append, self, other))

    def take(self, index):
        """Return the rows ``index`` alone."""
        return RowTable(*(part[index] for part in self))

    @property
    def used(self):
        """Indices of the rows that have a place."""
        return np.flatnonzero(self.place >= 0)


class OnlineS3VM(BaseS3VM):
    """A `BaseS3VM` with ``partial_fit``.

    A subclass implements what `BaseS3VM` asks for, hands the machine of each two-class problem
    over in ``_fit_binary`` by ``self._machines.append(machine)``, and adds

    - ``_start(data, problem, index)``: a machine that has seen no row;
    - ``_update(machine, data, t, problem, index)``: takes the batch in and returns a `BinaryFit`;
    - optionally ``_snapshot(machine)`` and ``_restore(machine, snapshot)``, which by default copy
      all attributes deeply: write cheaper ones where a machine holds much;
    - optionally ``_store_batch(data, problems, fits, X, codes)``, which sets the fitted attributes
      after a batch (X and codes with its rows of weight zero). The default is right where
      ``fit.dual`` is None; ``transduction_`` then covers the rows of the last call.

    ``data.rows`` are positions in the batch. Those of weight zero are left out, and at
    least one is left.
    """

    _wants_unlabeled = False  # they may come later
    _machines = ()

    @validated
    def partial_fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: ArrayLike | None = None,
        unlabeled_mask: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> Self:
        """Learn from more rows, labeled and unlabeled, one or many.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (m, d)
            New rows.
        y : array-like of shape (m,)
            Their labels; −1 or a missing label marks unlabeled rows, as in `fit`.
        sample_weight : array-like of shape (m,), default=None
            Non-negative weights, not all 0; a weight of 0 leaves a row out.
        unlabeled_mask : array-like of bool, shape (m,), default=None
            True for unlabeled rows, as in `fit`.
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever be seen. Needed at the first call, unless `fit` came before
            or the first batch holds two labeled classes, which are then all there are.

        Returns
        -------
        self : object
            The estimator. After an error it is exactly as it was before the call.

        Raises
        ------
        ValueError
            For a label outside the classes, another number of features, or an input or parameter
            that is not valid.

        Notes
        -----
        ``gamma="scale"`` is computed from the rows of the first call and stays as it is: give a
        number where that call holds only a few rows.
        """
        with self._unchanged_on_error(), using(self.n_jobs):
            return self._partial_fit(X, y, sample_weight, unlabeled_mask, classes)

    @contextmanager
    def _unchanged_on_error(self):
        """Give the machines, which a call changes in place, their state back where it fails."""
        snapshots = [(machine, self._snapshot(machine)) for machine in self._machines]
        try:
            yield
        except BaseException:
            for machine, snapshot in snapshots:
                self._restore(machine, snapshot)
            raise

    def _partial_fit(self, X, y, sample_weight, unlabeled_mask, classes):
        # The first call, or an earlier fit, settles classes and kernel for all calls to come.
        first = not hasattr(self, "classes_")
        marked = mark_missing(y, unlabeled_mask)
        told = marked is not y
        X, y = self._checked_batch(X, marked, first)
        known = self._known_classes(classes, unlabeled_mask, first)
        asked = known is None and unlabeled_mask is None
        codes, known = split_labels(y, unlabeled_mask, known)
        if asked:
            warn_of_marks(known, None if told else codes)
        weight = np.ones(X.shape[0])
        if sample_weight is not None:
            weight = checked_weight(sample_weight, X)
            if not weight.any():  # before version 1.9, scikit-learn lets them pass
                raise ValueError(
                    "sample_weight must hold at least one non-zero number, got only zeros"
                )
        data = self._batch(X, codes, weight, known, first)
        self._check_scales(data)
        if first:
            self.classes_, self.gamma_ = known, data.kernel.gamma
            by_rows = "gamma" in data.kernel.parameters and self.gamma in ("scale", "variance")
            if by_rows and X.shape[0] < _FEW:
                warnings.warn(
                    f"gamma={self.gamma!r} is {self.gamma_:.3g} by the first batch of {X.shape[0]} "
                    "rows, and stays so: give gamma as a number, or begin with more rows",
                    FitWarning,
                    stacklevel=4,
                )
            problems = [self._problem(data, None) for _ in positives(data)]
            self._machines = [self._start(data, p, i) for i, p in enumerate(problems)]
        else:
            problems = self._problems
        # One machine a class learns the same batch.
        fits = []
        for index, k in enumerate(positives(data)):
            machine, t = self._machines[index], targets(data, k)
            fits.append(self._update(machine, data, t, problems[index], index))
        self._store_batch(data, problems, fits, X, codes)
        self._check_result()
        self._warn_of_limits(fits, 5, self._batch_findings(data, fits))
        return self

    def _batch_findings(self, data, fits):
        """Return what is wrong after a batch; overridden where J of all rows is computed."""
        return {}

    def _training(self, X, codes, weight, classes):
        self._machines = []  # `fit` starts over
        return super()._training(X, codes, weight, classes)

    def _checked_batch(self, X, y, first):
        """Return the batch as arrays; a subclass with a precomputed kernel overrides this."""
        if self._precomputed:
            raise ValueError(
                f"kernel='precomputed' is not possible with {type(self).__name__}.partial_fit: "
                "new rows need kernel values that the Gram matrix does not hold"
            )
        X, y = checked_rows_and_labels(self, X, y, self._dtype, reset=first)
        check_size(X)
        return X, y

    def _known_classes(self, classes, unlabeled_mask, first):
        """Return the classes as an array, or None where the first batch decides."""
        if classes is None:
            return None if first else self.classes_
        given = np.asarray(classes)
        if given.ndim != 1 or np.unique(given).size < 2:
            raise ValueError(
                f"classes must be one-dimensional and hold at least two labels, got {classes!r}"
            )
        given = np.unique(given)
        if unlabeled_mask is None and first and np.any(np.asarray(given == -1, dtype=bool)):
            raise ValueError(
                "classes must not hold -1, which means unlabeled: encode your targets with "
                "s3vm_lib.encode_labels(y), or pass unlabeled_mask"
            )
        # Later calls may name the classes again, but not others.
        if not first and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_.tolist()}, got "
                f"{given.tolist()}"
            )
        return given

    def _batch(self, X, codes, weight, classes, first):
        """Return the batch without rows of weight zero, with the kernel of the first call."""
        if getattr(self, "class_weight", None) == "balanced":
            raise ValueError(
                "class_weight='balanced' is not possible in partial_fit, where the counts of the "
                "classes are not known: give the weights as a dict"
            )
        kernel = self._resolve_kernel(X, weight) if first else self._problems[0].kernel
        return self._with_weight(X, codes, weight, classes, kernel)

    def _store_batch(self, data, problems, fits, X, codes):
        self._store(data, problems, fits)
        self._transduce(X, codes, data.rows, fits)

    def _snapshot(self, machine):
        return copy.deepcopy(vars(machine))

    def _restore(self, machine, snapshot):
        machine.__dict__ = snapshot


class KeepingS3VM(OnlineS3VM):
    """An `OnlineS3VM` that keeps all its rows, in the `RowTable` ``_held``.

    The `BinaryFit` of a subclass has one entry for each row of ``_held.used``, in their order.
    ``_kept_X()`` returns the data of these rows, or None where support vectors are computed on
    demand, and ``_next_place()`` the place of the first row of the next batch.
    """

    def _training(self, X, codes, weight, classes):
        data = super()._training(X, codes, weight, classes)
        self._held = RowTable.of(data, codes, weight)
        return data

    def _batch(self, X, codes, weight, classes, first):
        data = super()._batch(X, codes, weight, classes, first)
        new = RowTable.of(data, codes, weight, 0 if first else self._next_place())
        self._held = new if first else self._held.extended(new)
        return data

    def _store(self, data, problems, fits):
        self._store_model(self._held.used, self._kept_X(), problems, fits)

    def _batch_findings(self, data, fits):
        """Look at the objective alone: shares and labels of a stream are those of its beginning."""
        held = self._held.take(self._held.used)
        return self._objective_finding(
            data._replace(codes=held.codes, loss_weight=held.loss_weight), fits
        )

    def _transduce(self, X, codes, rows, fits):
        """Set the labels of all rows; zero-weight rows keep the label assigned on arrival."""
        # A row without a place has no output in the fits: it is predicted once, on arrival.
        held = self._held
        found, new = held.guess.copy(), np.flatnonzero((held.place < 0) & (held.guess < 0))
        if new.size:
            found[new] = self._decide(self._outputs(X[new - held.codes.size + codes.size]))
            self._held = held._replace(guess=found.copy())
        found[held.used] = self._decide(np.column_stack([fit.outputs for fit in fits]))
        self.transduction_ = self.classes_[np.where(held.codes >= 0, held.codes, found)]
        return found
