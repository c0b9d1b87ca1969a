"""Table 2 of the QN-S3VM paper, its other columns: CCCP, multi-switch and annealing.

The partitions, the cross-validation and the rules of selection of ``qn_table2``, with the library's
counterparts of the programs that the paper ran: `CCCPS3VM` for UniverSVM, `MultiSwitchTSVM` for
TSVMlin and `DAS3VM` for DA, linear kernel. C = 1/(2λl), C* = λ'/(2λu) (the paper gives UniverSVM
C* in {.01, 1, 100}/u whatever C is), on a coarser grid than printed: λ in 2^{-10, -7, -4, -1, 2}
and λ' in {.01, 1, 100}. Ten partitions, but three of the digits for DA, whose fits with a large λ'
take seconds there.
"""

from benchmarks import batch_solvers, qn_paper
from benchmarks.tables import qn_table2

COLUMNS = {"UniverSVM": "CCCPS3VM", "TSVMlin": "MultiSwitchTSVM", "DA": "DAS3VM"}
LAMBDAS = [2.0**k for k in (2, -1, -4, -7, -10)]
ROWS = [{**row, "column": column} for column in COLUMNS for row in qn_table2.ROWS]


def measure(set, l, labels, column):
    """One row: see the protocol in the module's docstring."""
    sizes = qn_table2.paper()[set, l]["sizes"]
    method = COLUMNS[column]
    costs = [1 / (2 * lam * l) for lam in LAMBDAS]
    settings = batch_solvers.grid(method, costs, qn_paper.LAMBDA_PRIMES)
    number = 3 if column == "DA" and set[0] in "MU" else qn_paper.N_PARTITIONS
    parts = qn_paper.partitions(set, *sizes, stratified=labels == "stratified", number=number)
    methods = {column: (settings, batch_solvers.make(method))}
    compared = qn_paper.compare(parts, methods, sizes[2])
    return {
        "sizes": sizes,
        "partitions": number,
        "error": compared["error"][column],
        "unconverged": compared["unconverged"][column],
    }
