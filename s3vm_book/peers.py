"""Verdicts beside other programs, which were run by us."""

from s3vm_book.rules import Basis, Verdict
from s3vm_book.tables import programs, stored

COUNTERPARTS = {"MultiSwitchTSVM": "multi-switch", "DAS3VM": "annealing"}


def svmlin():
    """Our multi-switch and annealing against the program SVMlin.

    Returns
    -------
    dict of (str, str) to Verdict
        By set and method.
    """
    ties = ("cv_strong", "cv_ties", "cv_weak")
    basis = Basis(
        "same: multi-switch and deterministic annealing",
        "same: thirty draws of G2C and G4C with 25 random labels",
        "differs: both by cross-validation on the labels, each over its own grid, which was drawn"
        " around what does well on these draws",
        "same: mean test error over the thirty draws",
        "reached: our mean is not above the program's, under so many of three rules for ties",
    )
    found, program = {}, programs("SVMlin")
    for one in stored("gaussians_cv"):
        key = one["row"]["kind"], one["row"]["method"]
        theirs = program.get((COUNTERPARTS.get(key[1]), key[0]))
        if one["row"]["ratio"] == "labels" and theirs is not None:
            means = [one["result"]["error"][rule]["mean"] for rule in ties]
            count = sum(mean <= theirs for mean in means)
            found[key] = Verdict(
                f"{key[0]}, {key[1]}",
                f"{theirs:.1f}",
                " / ".join(f"{mean:.1f}" for mean in means),
                f"reached by {count} of 3 tie rules",
                basis,
            )
    return found
