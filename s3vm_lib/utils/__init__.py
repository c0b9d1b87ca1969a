"""Compiling, random numbers, threads, rows, labels, limits: what knows of no kernel and no loss."""
