"""All verdicts of the book, by source."""

from collections import Counter

from s3vm_book import gkm, il, peers, qn, tsg


def all_verdicts():
    """Every verdict of the book.

    Returns
    -------
    dict of str to list of Verdict
        By source and part, such as "QN-S³VM, Table 2, labels at random".
    """
    groups = {}
    for draw, drawn in qn.DRAWS.items():
        groups[f"QN-S³VM, Table 2, labels {drawn}"] = list(qn.table_2(draw).values())
        for column in qn.COLUMNS:
            name = f"QN-S³VM, Table 2, {column}, labels {drawn}"
            groups[name] = list(qn.baselines_2(column, draw).values())
    groups["QN-S³VM, figures"] = qn.figures()
    groups["IL-S³VM, Tables 2 and 3"] = il.tables_23()
    groups["IL-S³VM, figures"] = il.fig_3() + il.fig_4()
    groups["TSGS³VM, figures"] = tsg.verdicts()
    groups["GKM, Figure 2"] = gkm.figure_2()
    groups["GKM, Tables 2 and 3"] = list(gkm.tables_23().values())
    groups["GKM, Table 4, Figure 3"] = list(gkm.table_4().values())
    groups["GKM, Table 5"] = list(gkm.table_5().values())
    groups["SVMlin"] = list(peers.svmlin().values())
    return {name: found for name, found in groups.items() if found}


def counts(found):
    """How often each verdict occurs.

    Parameters
    ----------
    found : iterable of Verdict

    Returns
    -------
    Counter
    """
    return Counter(one.verdict for one in found)
