"""The sets, in two parts that were fixed before anything was measured.

Defaults may be chosen on the tuning sets; what the book says of methods comes from the reported
ones. The tuning part holds the sets on which prototypes were tried before there was this protocol.
Relatives are apart as far as they can be: ``a9a_t`` shares no row with a1a; w8a contains w1a, of
which one row in twenty of a draw is; ``ssl_usps``, ``uspst`` and ``usps`` are digits of one
collection, grouped and scaled in different ways; ``ssl_text`` and ``text_lds`` are newsgroups of
one collection.
"""

from benchmarks.bakeoff.draws import Set

_GAUSS = dict(n_features=50, distance=4.0)
_TEN = (50, 100)  # numbers of labels where there are ten classes

SETS = (
    Set("g2c", "tuning", "generated", "make_g2c()", dict(n_samples=500)),
    Set("g4c", "tuning", "generated", "make_g4c()", dict(n_samples=500)),
    Set("moons", "tuning", "generated", "make_moons()", dict(noise=0.15)),
    Set("words", "tuning", "generated", "make_bag_of_words()", dict(n_features=5000)),
    Set("gauss20", "tuning", "generated", "two_gaussians()", dict(positive=0.2, **_GAUSS)),
    Set("gauss10", "tuning", "generated", "two_gaussians()", dict(positive=0.1, **_GAUSS)),
    Set("g50c", "tuning", "generated", "g50c"),
    Set("ssl_g241c", "tuning", "tabular", "ssl_g241c"),
    Set("ssl_g241d", "tuning", "tabular", "ssl_g241d"),
    Set("ssl_usps", "tuning", "image", "ssl_usps"),
    Set("ssl_bci", "tuning", "tabular", "ssl_bci"),
    Set("ssl_text", "tuning", "text", "ssl_text"),
    Set("australian", "tuning", "tabular", "australian"),
    Set("svmguide1", "tuning", "tabular", "svmguide1"),
    Set("svmguide3", "tuning", "tabular", "svmguide3"),
    Set("a1a", "tuning", "tabular", "a1a"),
    Set("w1a", "tuning", "text", "w1a"),
    Set("mnist_3_8", "tuning", "image", "mnist_3_8"),
    Set("digits10", "tuning", "image", "digits()", multi=True, labels=_TEN),
    Set("iris", "tuning", "tabular", "iris()", multi=True, labels=(15, 30)),
    Set("wine", "tuning", "tabular", "wine()", multi=True, labels=(15, 30)),
    Set("gauss4", "tuning", "generated", "gaussians()",
        dict(n_features=30, shares=(0.25,) * 4, distance=4.5), multi=True, labels=(25, 50)),
    Set("overlap", "reported", "generated", "two_gaussians()",
        dict(n_features=10, positive=0.5, distance=2.0)),
    Set("overlap20", "reported", "generated", "two_gaussians()",
        dict(n_features=10, positive=0.2, distance=2.0)),
    Set("gauss15", "reported", "generated", "two_gaussians()",
        dict(n_features=20, positive=0.15, distance=3.5)),
    Set("mixture20", "reported", "generated", "make_mixture()"),
    Set("words_long", "reported", "generated", "make_bag_of_words()",
        dict(n_features=10_000, n_terms=120, tilt=0.4)),
    Set("rings", "reported", "generated", "rings()", dict(noise=0.3)),
    Set("spirals", "reported", "generated", "spirals()", dict(noise=0.5)),
    Set("g10n", "reported", "generated", "g10n"),
    Set("breast_cancer", "reported", "tabular", "load_breast_cancer_scaled()"),
    Set("ssl_coil", "reported", "image", "ssl_coil"),
    Set("text_lds", "reported", "text", "text_lds"),
    Set("uspst", "reported", "image", "uspst"),
    Set("usps", "reported", "image", "usps"),
    Set("usps_2_5", "reported", "image", "usps_2_5"),
    Set("mnist", "reported", "image", "mnist_t"),
    Set("coil20", "reported", "image", "coil20"),
    Set("mushrooms", "reported", "tabular", "mushrooms"),
    Set("a9a_t", "reported", "tabular", "a9a_t"),
    Set("w8a", "reported", "text", "w8a"),
    Set("madelon", "reported", "tabular", "madelon"),
    Set("cod-rna", "reported", "tabular", "cod-rna"),
    Set("covtype", "reported", "tabular", "covtype"),
    Set("ijcnn1", "reported", "tabular", "ijcnn1"),
    Set("skin_nonskin", "reported", "tabular", "skin_nonskin"),
    Set("susy_30k", "reported", "tabular", "susy_30k"),
    Set("dota2", "reported", "tabular", "dota2", skip=3),
    Set("uspst10", "reported", "image", "uspst", multi=True, labels=_TEN),
    Set("coil6", "reported", "image", "ssl_coil", multi=True, labels=_TEN),
    Set("mnist10", "reported", "image", "mnist_t", multi=True, labels=_TEN),
    Set("usps10", "reported", "image", "usps", multi=True, labels=_TEN),
    Set("gauss6", "reported", "generated", "gaussians()",
        dict(n_features=15, shares=(0.35, 0.2, 0.15, 0.1, 0.1, 0.1), distance=4.0),
        multi=True, labels=_TEN),
)  # fmt: skip
