"""The search of the book: "S3VM" finds S³VM, "Nystrom" finds Nyström, chapters come first."""

import itertools
import re
import unicodedata

from docutils import nodes
from sphinx import addnodes
from sphinx.search.en import SearchEnglish
from sphinx.util.index_entries import split_index_msg

# What a reader may look for under another name than the chapter's: names of methods and of ideas.
SUBJECTS = {
    "book/with_scikit_learn": (
        *("missing labels", "pandas", "NaN", "scikit-learn", "cross-validation", "grid search"),
        *("predict_proba", "probabilities", "calibration", "Platt scaling"),
    ),
    "book/install": ("GPU", "pip", "installation", "PyTorch", "CUDA", "Windows", "requirements"),
    "book/own_data": (
        *("csv", "save a model", "load a model", "pickle", "joblib", "skops", "own data"),
        *("unlabelled marker", "missing label", "more than two classes", "multiclass"),
        *("predict new rows", "pandas DataFrame"),
    ),
    "book/files": (
        *(
            "SVMlight file",
            "LIBSVM file",
            "KEEL",
            "ARFF",
            "Weka",
            "Percolator",
            "parquet",
            "PIN file",
        ),
        *(
            "command line",
            "gaps and categories",
            "imputation",
            "false discovery rate",
            "target decoy",
        ),
    ),
    "book/positives": (
        *("positive and unlabelled", "PU learning", "one class", "class prior", "decoys"),
        *("positives only", "screening", "Elkan and Noto", "reliable negatives"),
    ),
    "book/neighbours": ("other programs", "scikit-learn", "skl2onnx", "mokapot", "sslearn"),
    "book/ship": ("ONNX", "export", "deploy a model", "skl2onnx", "svm-predict", "model file"),
    "book/story_documents": (
        *("text classification with few labels", "sentence embeddings", "encoder", "tf-idf"),
        *("rare class", "spam"),
    ),
    "book/story_peptides": (
        *(
            "Percolator",
            "mokapot",
            "proteomics",
            "mass spectrometry",
            "positive-unlabelled learning",
        ),
        *("target decoy", "false discovery rate", "entrapment"),
    ),
    "book/story_cells": (
        *("single-cell", "gene expression", "cell types", "scanpy", "marker genes", "UMAP"),
        *("rare class", "many classes"),
    ),
    "book/story_patients": ("medical data", "diabetes", "when it fails", "no gap", "threshold"),
    "book/relatives": (
        *("pseudo-labels", "entropy minimisation", "FixMatch", "mean teacher", "deep learning"),
        *("virtual adversarial training", "consistency", "active learning", "query strategy"),
        *("covariate shift", "importance weights", "conformal prediction", "prediction sets"),
    ),
    "book/help": ("help", "support", "report a bug", "questions", "troubleshooting", "FAQ"),
    "book/cite": ("cite", "citation", "BibTeX", "licence", "license"),
    "book/changelog": ("changelog", "what is new", "release notes", "version history"),
    "book/notation": ("C_star", "C*", "symbols", "meaning of parameters"),
    "book/how_to_read": ("map of chapters", "tolerances", "where to begin"),
    "book/svm": (
        *("SVM", "SMO", "sequential minimal optimization", "duality gap"),
        *("slack", "hinge loss", "leave-one-out bound", "balance of forces"),
    ),
    "book/kernels": (
        *("representer theorem", "kernel trick", "RKHS", "reproducing kernel Hilbert space"),
        *("positive definite kernel", "Moore and Aronszajn", "choosing gamma", "Gaussian kernel"),
        *("kernel ridge regression", "median heuristic"),
    ),
    "book/unlabelled": (
        *("S3VM", "TSVM", "transductive SVM", "semi-supervised SVM"),
        *("cluster assumption", "low-density separation", "effective loss", "relabelling"),
    ),
    "book/landscape": (
        *("local minima", "balance constraint", "empty class", "degenerate solution", "annealing"),
        *("centring", "landscape of the objective"),
    ),
    "book/exact_solutions": (
        *("branch and bound", "global optimum", "NP-hard", "PARTITION", "lower bound"),
        *("certificate", "interval bounds"),
    ),
    "book/switching": (
        *("SVM-light", "S3VM-light", "label switching", "multi-switch", "SVMlin"),
        *("sparse text", "text classification"),
    ),
    "book/annealing": ("deterministic annealing", "DA", "free energy", "temperature", "entropy"),
    "book/primal_newton": (
        *("nabla-TSVM", "NTS3VM", "finite Newton", "primal training"),
        *("trust region", "negative curvature", "saddle point"),
    ),
    "book/quasi_newton": ("QN-S3VM", "BFGS", "quasi-Newton", "out of core", "a million rows"),
    "book/paper_qn": ("replication of QN-S3VM", "errata of QN-S3VM"),
    "book/cccp": ("CCCP", "concave-convex procedure", "DC programming", "ramp loss", "UniverSVM"),
    "book/balance_smo": ("balance row", "inner solver of CCCP", "doubled data set"),
    "book/paper_classics": (
        *(
            "published splits",
            "run time of UniverSVM",
            "run time of SVMlin",
            "run time of SVMlight",
        ),
        *("errata of SVMlight", "errata of TSVM"),
    ),
    "book/path_following": (
        *("IL-S3VM", "incremental learning", "decremental learning", "leave-one-out"),
        *("online learning", "regularization path"),
    ),
    "book/random_features": ("random Fourier features", "Bochner's theorem", "Nyström method"),
    "book/stochastic": ("TSGS3VM", "FRS3VM", "stochastic gradients", "doubly stochastic"),
    "book/paper_tsgs": ("replication of TSGS3VM", "errata of TSGS3VM"),
    "book/distributed": ("Dask", "data parallelism", "Amdahl's law", "memory map"),
    "book/graphs": ("LapSVM", "Laplacian SVM", "manifold regularization", "graph Laplacian"),
    "book/model_selection": (
        *("model selection", "grid search", "cross-validation", "ties", "winner's curse"),
        *("nested cross-validation", "stability of a labelling"),
    ),
    "book/graph_kernel_machine": ("GKM", "BGS3VM", "self-training", "budgeted learning"),
    "book/paper_gkm": ("replication of GKM", "errata of GKM"),
    "book/class_ratio": (
        *("class ratio", "class prior", "BBSE", "label shift", "prior shift", "quantification"),
        *("prediction-powered inference", "PPI", "rare classes", "imbalanced classes"),
        *("class imbalance", "unbalanced data"),
    ),
    "book/when_not": (
        *("S4VM", "SafeS3VM", "S3VC", "safe semi-supervised learning", "McNemar's test"),
        *("no free lunch", "when unlabelled data hurt", "checklist"),
    ),
    "book/bakeoff": (
        *("benchmark", "comparison of estimators", "Friedman test", "Nemenyi test", "ranks"),
        *("critical difference", "which estimator", "Wilcoxon signed-rank test", "time limit"),
    ),
    "book/paper_ils": (
        *("NN-BB", "changes of μ"),
        *("replication of IL-S3VM", "errata of IL-S3VM"),
    ),
}


def fold(text):
    """Text without accents and raised digits: S³VM is S3VM, Nyström is Nystrom."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(char for char in parts if not unicodedata.combining(char))


class FoldedEnglish(SearchEnglish):
    """English in which accents and raised digits make no difference, as in `search_scorer.js`."""

    def split(self, input):
        return super().split(fold(input))


def add_subjects(app, doctree):
    """Enter the subjects of a chapter into the general index, and all entries into the search."""
    section = next(iter(doctree.findall(nodes.section)), None)
    subjects = SUBJECTS.get(app.env.docname, ())
    if section is not None and subjects:
        entries = [("single", name, section["ids"][0], "main", None) for name in subjects]
        app.env.get_domain("index").entries[app.env.docname] += entries  # it has read the page
        doctree.insert(0, addnodes.index(entries=entries))
    for node in doctree.findall(addnodes.index):
        node["entries"] = [(kind, fold(name), *rest) for kind, name, *rest in node["entries"]]


def join_texts(app, doctree, docname):
    """Make one text of neighbours: in "Sch", "ö", "lkopf" the search would see three words."""
    for parent in list(doctree.findall(nodes.TextElement)):
        if any(
            isinstance(a, nodes.Text) and isinstance(b, nodes.Text)
            for a, b in itertools.pairwise(parent)
        ):
            children = []
            for same, group in itertools.groupby(
                parent.children, lambda one: isinstance(one, nodes.Text)
            ):
                group = list(group)
                children += [nodes.Text("".join(map(str, group)))] if same else group
            parent.children = []
            parent.extend(children)


def typeset_titles(app, doctree, docname):
    r"""Make formulas of the ``$...$`` in the bibliography."""
    for citation in doctree.findall(nodes.citation):
        for text in list(citation.findall(nodes.Text)):
            parts = re.split(r"\$([^$]+)\$", str(text))
            if len(parts) > 1:
                new = [
                    nodes.math("", part) if i % 2 else nodes.Text(part)
                    for i, part in enumerate(parts)
                ]
                text.parent.replace(text, new)


def remember_index(app, env):
    """Give the search the index entries of all pages; it forgets those of pages left as they are.

    Sphinx 7.4 reads titles and words back from the last build (`IndexBuilder.load`), entries not.
    """
    for docname, entries in env.get_domain("index").entries.items():
        env._search_index_index_entries[docname] = sorted(
            {
                (fold(text), target or "", main)
                for kind, value, target, main, _ in entries
                for text in split_index_msg(kind, value)
            }
        )


def setup(app):
    app.add_search_language(FoldedEnglish)
    app.connect("env-updated", remember_index)
    app.connect("doctree-read", add_subjects)
    app.connect("doctree-resolved", join_texts)
    app.connect("doctree-resolved", typeset_titles)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
