"""Command line of the bake-off: ``python -m benchmarks.bakeoff``; see benchmarks/README.md."""

import sys

from benchmarks.run import one_thread


def _parser():
    import argparse

    parser = argparse.ArgumentParser(prog="python -m benchmarks.bakeoff", description=__doc__)
    add = parser.add_argument
    add("--sets", nargs="+", metavar="S", help="names of sets, or a part: tuning, reported")
    add("--methods", nargs="+", metavar="M", help="names of methods, or beginnings followed by *")
    add("--labels", nargs="+", type=int, metavar="L", help="numbers of labels")
    add("--draws", default="0-9", metavar="A-B", help="draws (default: 0-9)")
    add("--mode", choices=("default", "search"), default="default")
    add("--seconds", type=float, help="start no new fit after this time")
    add("--limit", type=float, help="CPU seconds of a row (default: 10, of a search 60)")
    add("--megabytes", type=float, default=2000.0, help="memory of a fit (default: 2000)")
    add("--list", action="store_true", help="list sets and methods, with rows measured and missing")
    add("--show", action="store_true", help="print mean errors of what is stored")
    add("--stale", action="store_true", help="measure again what other code has measured")
    add("--again", action="store_true", help="measure again what is there")
    add("--compact", action="store_true", help="rewrite the files without what was replaced")
    add("--results", help="folder of the store")
    return parser


def main(arguments=None):
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, default=None
        Arguments; None means those of the process.

    Returns
    -------
    int
        Exit status.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    one_thread()
    from benchmarks import harness
    from benchmarks.bakeoff import plan, store
    from benchmarks.run import _numbers

    folder = options.results or store.RESULTS
    try:
        work = plan.Plan(
            plan.sets(options.sets),
            plan.methods(options.methods, options.mode),
            options.labels,
            _numbers([options.draws], 1000),
            options.mode,
        )
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        print(plan.listing(work, folder))
    elif options.show:
        print(plan.shown(work, folder))
    elif options.compact:
        for one in work.sets:
            store.compact(folder, one, plan.registry())
    else:
        if not options.results and harness.changes():
            print("commit first, or name a folder with --results; changed:", file=sys.stderr)
            print("\n".join(harness.changes()), file=sys.stderr)
            return 1
        plan.run(
            work,
            folder,
            seconds=options.seconds,
            limits=(options.limit or plan.SECONDS[options.mode], options.megabytes),
            redo="again" if options.again else "stale" if options.stale else "",
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
