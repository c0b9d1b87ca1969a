"""What all estimators share: validation, one-vs-rest, prediction, batches, and the look at a fit.

Read in this order: `machine` (classifiers and regressors), `classifier` (`BaseS3VM`), `online`
(`partial_fit`), `findings` (the look at a fit), `preparation` (many settings on the same rows).
"""
