"""Command line of the benchmarks: ``python -m benchmarks.run TABLE``; see benchmarks/README.md."""

import os
import sys

THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def one_thread():
    """Bind the numerical libraries to one thread; they read these variables when loaded."""
    if "numpy" in sys.modules and any(os.environ.get(name) != "1" for name in THREADS):
        raise RuntimeError("NumPy was loaded before the number of threads could be set")
    os.environ.update(dict.fromkeys(THREADS, "1"))


def _numbers(parts, n):
    """Row numbers from parts like 3 or 5-8."""
    chosen = []
    for part in parts:
        first, _, last = part.partition("-")
        chosen.extend(range(int(first), int(last or first) + 1))
    if not all(0 <= k < n for k in chosen):
        raise SystemExit(f"rows are numbered 0 to {n - 1}")
    return chosen


def main(arguments=None):
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, default=None
        Arguments; None means those of the process.

    Returns
    -------
    int
        Exit status: 1 if a row failed.
    """
    import argparse

    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("table", nargs="?", help="name of the table")
    parser.add_argument("--list", action="store_true", help="list tables, or rows of the table")
    parser.add_argument("--show", action="store_true", help="print the stored results")
    parser.add_argument("--rows", nargs="+", metavar="N", help="row numbers such as 0 or 4-7")
    parser.add_argument("--again", action="store_true", help="measure stored rows again")
    parser.add_argument(
        "--stale", action="store_true", help="again, rows that were measured with other code"
    )
    parser.add_argument("--seconds", type=float, help="start no new row after this time")
    parser.add_argument("--results", help="folder of the result files")
    options = parser.parse_args(arguments)
    if not options.table and not options.list:
        parser.error("name a table, or use --list")

    one_thread()
    import json
    import time
    import traceback

    from benchmarks import harness

    folder = options.results or harness.RESULTS
    if not options.table:
        for name in harness.tables():
            module = harness.table(name)
            summary = module.__doc__.strip().splitlines()[0]
            measured = len(harness.read(name, folder))
            print(f"{name:20s} {measured:3d} of {len(module.ROWS):3d} rows  {summary}")
        return 0
    try:
        module = harness.table(options.table)
    except ValueError as error:
        parser.error(str(error))
    measuring = not (options.list or options.show)
    if measuring and not options.results and harness.changes():
        print("commit first, or name another folder with --results; changed:", file=sys.stderr)
        print("\n".join(harness.changes()), file=sys.stderr)
        return 1
    stored = {json.dumps(e["row"]): e for e in harness.read(options.table, folder)}
    chosen = _numbers(options.rows, len(module.ROWS)) if options.rows else range(len(module.ROWS))
    if not measuring:
        for k in chosen:
            entry = stored.get(json.dumps(module.ROWS[k]))
            print(k, json.dumps(module.ROWS[k]), "" if entry else "(not measured)")
            if entry and options.show:
                print("   ", json.dumps(entry["result"], ensure_ascii=False))
        return 0
    failed, start = 0, time.monotonic()
    for k in chosen:
        row = module.ROWS[k]
        entry = stored.get(json.dumps(row))
        if entry and not options.again:
            code = entry["provenance"]["sources"]
            if not options.stale or code == harness.source_hash(options.table):
                continue
        if options.seconds and time.monotonic() - start > options.seconds:
            print("time is up; run again to go on")
            break
        begun = time.monotonic()
        try:
            result = module.measure(**row)
        except OSError as error:  # a data set that is not at hand
            failed += 1
            print(f"row {k} {json.dumps(row)} not run: {error}", file=sys.stderr)
            continue
        except Exception:  # one broken row must not end the others
            failed += 1
            print(f"row {k} {json.dumps(row)} failed:\n{traceback.format_exc()}", file=sys.stderr)
            continue
        seconds = time.monotonic() - begun
        harness.write(options.table, row, result, folder, seconds / 60)
        print(f"row {k} {json.dumps(row)} {seconds:.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
