"""Plain NumPy twins of the solvers: at most 40 lines each, for chapters, tests and benchmarks."""
