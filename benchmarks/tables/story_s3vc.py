"""S3VC on the rows of the stories: one command measures them again when it changes.

The protocols are those of the tables story_documents, story_patients and story_cells, whose sets
and seeds these are; of the cells, `labels` are those of each type.
"""

from benchmarks.stories import build, compare, compare_types
from s3vm_book.stories import cells, documents, patients

ROWS = [
    *({"question": "card", "encoder": "e5", "labels": k} for k in (10, 25, 50, 100)),
    *({"question": "spam", "encoder": "e5", "labels": k} for k in (25, 50, 100)),
    *({"question": "urgent", "encoder": "e5", "labels": k} for k in (25, 50, 100)),
    *({"question": "praise", "encoder": "e5", "labels": k} for k in (10, 25, 50, 100)),
    *({"question": "patients", "encoder": None, "labels": k} for k in (10, 25, 50, 100, 200)),
    *({"question": "cells", "encoder": None, "labels": k} for k in (5, 10, 20)),
]


def measure(question, encoder, labels):
    """Errors of S3VC, a value a seed."""
    if question == "patients":
        _, X, truth = patients()
        return compare("S3VC", X, truth, labels)
    if question == "cells":
        found = cells()
        return compare_types(lambda _, seed: build("S3VC", seed), found.X, found.y, labels)
    found = documents(question, encoder)
    return compare("S3VC", found.X, found.y, labels)
