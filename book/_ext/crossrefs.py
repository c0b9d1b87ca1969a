"""Links between chapters and API pages, the table of estimators, and the lists of statements."""

import functools

from docutils import nodes
from node_tables import table
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

import s3vm_lib
from s3vm_lib import capabilities

# Of each estimator: its method, its losses (labelled; unlabelled), the chapter that derives it.
ESTIMATORS = {
    "SVM": ("support vector machine, by SMO", "hinge; none", "svm"),
    "BranchBoundS3VM": (
        "the global optimum, by branch and bound",
        "hinge; symmetric hinge",
        "exact_solutions",
    ),
    "S3VMLight": ("label switching", "hinge; symmetric hinge", "switching"),
    "MultiSwitchTSVM": (
        "many switches at once",
        "squared hinge; squared symmetric hinge",
        "switching",
    ),
    "DAS3VM": (
        "deterministic annealing",
        "squared hinge; squared symmetric hinge",
        "annealing",
    ),
    "NewtonS3VM": (
        "gradients, conjugate gradients and Newton steps in the primal",
        "squared hinge; Gaussian",
        "primal_newton",
    ),
    "QNS3VM": ("quasi-Newton annealing", "modified logistic; Gaussian", "quasi_newton"),
    "CCCPS3VM": ("the concave-convex procedure", "hinge; symmetric ramp", "cccp"),
    "ILS3VM": (
        "incremental and decremental path following",
        "hinge; symmetric hinge",
        "path_following",
    ),
    "NNBBS3VM": (
        "new rows by branch and bound over their neighbours",
        "hinge; symmetric hinge",
        "paper_ils",
    ),
    "FRS3VM": (
        "stochastic gradients on stored random features",
        "modified logistic; Gaussian",
        "stochastic",
    ),
    "TSGS3VM": ("triply stochastic gradients", "modified logistic; Gaussian", "stochastic"),
    "LapSVM": ("Laplacian SVM", "squared hinge; smoothness on a graph", "graphs"),
    "GKM": (
        "graph-based kernel machine, by stochastic gradients",
        "hinge; smoothness on edges",
        "graph_kernel_machine",
    ),
    "GKMRegressor": (
        "the same for numbers in place of classes",
        "ε-insensitive; smoothness on edges",
        "graph_kernel_machine",
    ),
    "BGS3VM": (
        "the same within a budget of support rows",
        "hinge; smoothness on edges",
        "graph_kernel_machine",
    ),
    "SelfTrainingKNN": ("self-training with nearest neighbours", "none", "graph_kernel_machine"),
    "S3VC": ("a vote of machines that differ in kind", "of its solver", "when_not"),
    "SafeS3VM": ("a safeguard around any of them", "those of the estimator", "when_not"),
}

# The chapters that explain a module; of one with an estimator, the estimator's chapter.
EXPLAINED = {
    "svm": ["svm"],
    "branch_and_bound": ["exact_solutions", "landscape"],
    "label_switching": ["switching"],
    "annealing": ["annealing"],
    "finite_newton": ["switching", "primal_newton"],
    "primal_newton": ["primal_newton"],
    "quasi_newton": ["quasi_newton"],
    "smooth": ["quasi_newton", "primal_newton"],
    "cccp": ["cccp", "balance_smo"],
    "laplacian_svm": ["graphs"],
    "graphs": ["graphs"],
    "graph_kernel_machine": ["graph_kernel_machine"],
    "budgeted": ["graph_kernel_machine"],
    "self_training": ["graph_kernel_machine"],
    "safe": ["when_not"],
    "s3vc": ["when_not"],
    "class_ratio": ["class_ratio"],
    "random_features": ["random_features"],
    "stochastic": ["stochastic", "distributed"],
    "path_following": ["path_following"],
    "nn_branch_and_bound": ["paper_ils"],
    "base": ["how_to_read"],
    "losses": ["unlabelled", "cccp", "quasi_newton"],
    "kernels": ["kernels", "quasi_newton"],
    "gram": ["svm", "path_following"],
    "row_blocks": ["quasi_newton", "distributed"],
    "objective": ["svm", "unlabelled", "landscape"],
    "checks": ["svm", "how_to_read"],
    "reference": ["how_to_read"],
    "model_selection": ["model_selection", "with_scikit_learn"],
    "grid_search": ["model_selection"],
    "datasets": ["datasets"],
    "readers": ["files"],
    "export": ["ship"],
    "rankings": ["files", "positives"],
    "plotting": ["how_to_read"],
}


def document(name):
    """A link to a page of the book, with its title."""
    options = {"refdomain": "std", "reftype": "doc", "reftarget": f"/book/{name}"}
    return addnodes.pending_xref("", nodes.inline(), refexplicit=False, refwarn=True, **options)


def python(name, shown):
    """A link to the API entry of a name."""
    options = {"refdomain": "py", "reftype": "obj", "reftarget": name}
    return addnodes.pending_xref("", shown, refexplicit=True, refwarn=True, **options)


def separated(items, separator=", "):
    """Nodes with a separator between them."""
    parts = []
    for item in items:
        parts += [nodes.Text(separator), item] if parts else [item]
    return parts


class EstimatorTable(SphinxDirective):
    """All estimators: method, losses, what they take, and the chapter."""

    TITLES = (
        "estimator",
        "method",
        "losses by default",
        "takes",
        "largest n",
        "chapter",
    )
    WIDTHS = (14, 26, 22, 16, 8, 14)

    def run(self):
        classes = [getattr(s3vm_lib, name) for name in ESTIMATORS if name != "GKMRegressor"]
        known = {row["estimator"]: row for row in capabilities(classes)}
        rows = []
        for name, (method, losses, chapter) in ESTIMATORS.items():
            row = known.get(name, known["GKM"])
            features = ("kernels", "sparse", "weights", "online")
            takes = ", ".join(feature for feature in features if row[feature])
            rows.append(
                [
                    python(f"s3vm_lib.{name}", nodes.literal(text=name)),
                    *(nodes.inline(text=text) for text in (method, losses, takes or "–")),
                    nodes.inline(text=f"{row['largest_n']:,}"),
                    document(chapter),
                ]
            )
        found = table(self.TITLES, rows, self.WIDTHS)
        found["classes"].append("estimators")
        return [found]


class statement_list(nodes.General, nodes.Element):
    """Where a list of theorems, algorithms or exercises is put when all pages are known."""


class StatementList(SphinxDirective):
    """All statements of the kinds named in the argument, by chapter: ``theorem lemma``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        return [statement_list(kinds=self.arguments[0].split())]


def tell_chapters(app, doctree):
    """Say below the title of an API page which chapters explain it."""
    folder, _, name = app.env.docname.rpartition("/")
    if folder != "book/api" or name not in EXPLAINED:
        return
    line = nodes.paragraph("", "Explained in ", classes=["explained"])
    line += [*separated([document(chapter) for chapter in EXPLAINED[name]]), nodes.Text(".")]
    section = next(iter(doctree.findall(nodes.section)))
    section.insert(1, line)


@functools.cache
def public_names():
    """What a chapter may name in the text, and its full name."""
    return {name: f"s3vm_lib.{name}" for name in s3vm_lib.__all__}


def link_names(app, doctree):
    """Turn the names of the library in the text of a page into links to their API entries."""
    folder, _, _ = app.env.docname.rpartition("/")
    if folder != "book":
        return
    for literal in list(doctree.findall(nodes.literal)):
        target = public_names().get(literal.astext().partition("(")[0])
        inside = (nodes.reference, addnodes.pending_xref, nodes.title)
        if target and not any(isinstance(one, inside) for one in ancestors(literal)):
            literal.parent.replace(literal, python(target, literal.deepcopy()))


def ancestors(node):
    while node.parent is not None:
        node = node.parent
        yield node


def chapters(env):
    """The names of the pages in the order of the book."""
    order, queue = [], [env.config.root_doc]
    while queue:
        name = queue.pop(0)
        order.append(name)
        queue = env.toctree_includes.get(name, []) + queue
    return order


def statements(env, docname):
    """Of each numbered statement of a page: its kind, number, id and title."""
    numbers = env.toc_fignumbers.get(docname, {})
    for node in env.get_doctree(docname).findall(nodes.Element):
        kind = node.get("realtype") or (
            node.get("type") if "exercise" in node.get("classes", ()) else None
        )
        if not kind or not node["ids"]:
            continue
        identity = node["ids"][0]
        counter = node.get("countertype", kind)
        number = ".".join(map(str, numbers.get(counter, {}).get(identity, ())))
        title = next(iter(node.findall(nodes.title)), None)
        yield kind, number, identity, title


def fill_lists(app, doctree, docname):
    """Put the lists of statements in place."""
    places = list(doctree.findall(statement_list))
    if not places:
        return
    found = {name: list(statements(app.env, name)) for name in chapters(app.env)}
    for place in places:
        content = []
        for name, all_of_them in found.items():
            items = nodes.bullet_list(classes=["statements"])
            for kind, number, identity, title in all_of_them:
                if kind in place["kinds"]:
                    address = f"{app.builder.get_relative_uri(docname, name)}#{identity}"
                    words = f"{kind.capitalize()} {number}".strip()
                    line = nodes.paragraph()
                    line += nodes.reference("", words, internal=True, refuri=address)
                    if title is not None and (rest := title_of(title)):
                        line += [nodes.Text(" · "), *rest]
                    items += nodes.list_item("", line)
            if items.children:
                heading = nodes.paragraph("", "", nodes.strong(text=app.env.titles[name].astext()))
                content += [heading, items]
        place.replace_self(content)


def title_of(title):
    """What a title says beyond the kind of statement, without parentheses around it."""
    subtitle = next(iter(title.findall(nodes.subtitle)), None)
    words = [child.deepcopy() for child in (subtitle or title).children]
    if subtitle is None and title.astext() in ("", "Exercise"):
        return []
    for i, end in ((0, str.lstrip), (-1, str.rstrip)):
        if isinstance(words[i], nodes.Text):
            words[i] = nodes.Text(end(str(words[i]), " ()"))
    return words


def setup(app):
    app.add_directive("estimator-table", EstimatorTable)
    app.add_directive("statement-list", StatementList)
    app.add_node(statement_list)
    app.connect("doctree-read", tell_chapters)
    app.connect("doctree-read", link_names)
    app.connect("doctree-resolved", fill_lists)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
