"""The bake-off: every method on every set, under one protocol that was written before measuring.

**Cells.** A cell is a set, a number of labels (10, 25, 50, 100) and a draw (0 to 9). A draw takes
at most 1000 rows at random for training and at most 1000 others for testing; of a set with fewer
than 1500 rows two thirds are for training. Generated sets are made anew in each draw. All of this
depends on the set and the draw alone: every method meets the same rows, and the labels of a larger
number contain those of a smaller one.

**Labels** are drawn at random, as they are when somebody labels rows: the share of a class among
them is not its share among the rows. One condition: the first ten hold each class at least once,
the first twenty-five at least twice (with six or ten classes: the first fifty, the
first hundred).
Orders are drawn until they do. Where a class is rare this makes it a little less rare among the
labels; with 2 in 100 (w1a, w8a) ten labels hold at least one, five times the share of the rows.

**Scaling.** Columns of dense real sets have mean 0 and variance 1 over the training rows, labelled
or not; generated ones keep the scale that their structure was made in. A sparse matrix with less
than a quarter of non-zeros stays as it is (texts have rows of unit length), any other is made
dense. Classes are those of `s3vm_lib.datasets.load`; three sets have their six or ten original
classes.

**Two parts.** The list in `benchmarks.bakeoff.sets` was split before anything was measured.
Defaults may be chosen on the tuning sets, and only there; what the book says of methods comes from
the reported ones. Both parts hold balanced and unbalanced, sparse, image, tabular and generated
sets.

**Methods** are every estimator of the library with its defaults, with the default kernel and with
the linear one; methods of scikit-learn with theirs; and candidates, which are named after what they
change. The mode ``search`` chooses from a small grid by cross-validation on the labels alone:
stratified folds, five or as many as the rarer class has labels, unlabelled rows always in training;
among settings that tie, the smallest C, then the smallest second parameter. Where a class has one
label the defaults stay. Supervised methods see the labelled rows alone.

**What is counted.** Wrong answers on the unlabelled training rows (what the transduction says,
otherwise `predict`) and on the test rows; processor seconds and memory of `fit`, or of the whole
search; iterations. A processor clock ticks every few milliseconds: a time below a tenth of a second
means something as a mean over cells only. A fit in which the compiler was busy is done again. Most
fits of a cell begin with the same estimate of the class ratio (same rows, labels, kernel and C): it
is computed once, and its time and memory are charged to each of them.

**Limits.** 10 CPU seconds (of a search 60) and 2000 MB above what the process holds, in a child
process that the system ends. Whatever happens there is a row: ``ok``, ``warned`` (not converged by
its own account), ``failed`` (with the exception), ``time``, ``memory``, ``crashed``, ``hung``. An
estimator whose ``_largest_n`` is below the rows of the cell is ``skipped``. A method that limits
have ended twice on a set is ``given_up`` on its other cells: the draws are measured one after the
other, so that this takes little away from what is known of the method, and hours from the whole.

**How it is compared.** Gains are over `SVM` with the same kernel and the same labels: the linear
one for a linear method, otherwise that with the default kernel. Better and worse mean by more than
one point in a cell; standard errors are those of paired differences over draws. A fit without an
answer counts as the guess that all rows are of the larger class; cells for which a method is
``skipped`` are left out. Rankings are over sets, after the mean over cells, since draws of one set
are not independent: Friedman's test, and Nemenyi's or Wilcoxon's with Holm's correction after it.
"""
