"""Measurements behind the book's tables and figures: one command per table.

    python -m benchmarks.run --list
    python -m benchmarks.run svm_vs_svc

See `benchmarks.harness` for what is measured and how, and ``benchmarks/README.md`` for a guide.
"""
