"""Documents with few labels: errors on the texts whose labels were hidden.

1,000 texts of each of three public sets, four questions (`s3vm_book.stories.QUESTIONS`): "card", 3
in 10 texts, and "urgent", 1 in 10, ask the same customers' questions of a bank; "spam", 1 in 8,
text messages; "praise", 1 in 2, sentences of reviews. Features: tf-idf, or those of a frozen
encoder, wordllama or multilingual-e5-small in 4 bits. Ten seeds draw which texts are labeled, at
random, in the ratio of the classes; all other texts are unlabeled rows, and errors are counted on
them. Methods are those of `benchmarks.stories`; columns are centred and divided by one number for
all methods. "share": the offset of the SVM gives the unlabeled rows the share of the labels. S3VC
is in the table story_s3vc.
"""

from benchmarks.stories import METHODS, compare
from s3vm_book.stories import documents

CASES = (
    *(("card", "e5", labels) for labels in (10, 25, 50, 100)),
    *(("spam", "e5", labels) for labels in (25, 50, 100)),
    *(("urgent", "e5", labels) for labels in (25, 50, 100)),
    *(("praise", "e5", labels) for labels in (10, 25, 50, 100)),
    *(("card", "wordllama", labels) for labels in (10, 25, 50, 100)),
    *(("spam", "wordllama", labels) for labels in (25, 50, 100)),
    ("card", "tf-idf", 25),
    ("spam", "tf-idf", 25),
)
ROWS = [
    {"question": question, "encoder": encoder, "labels": labels, "method": method}
    for question, encoder, labels in CASES
    for method in METHODS
]


def measure(question, encoder, labels, method):
    """Errors of one method, a value a seed."""
    found = documents(question, encoder)
    return compare(method, found.X, found.y, labels)
