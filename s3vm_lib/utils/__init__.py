"""The basement: compiling, random numbers, threads, blocks of rows, labels, limits, checks."""
