"""Make s3vm_book/texts.npz: sentences on functions of SciPy, as features of a frozen encoder.

The first sentences of the docstrings of scipy.signal and scipy.stats (SciPy 1.17.1, BSD licence),
and 256 numbers for each by wordllama 0.4.0.post1, which has its weights in the package. Run in an
environment of its own: ``pip install wordllama==0.4.0.post1 scipy==1.17.1``.
"""

import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import wordllama

found = {}
for name in ("signal", "stats"):
    module = importlib.import_module(f"scipy.{name}")
    for entry in sorted(module.__all__):
        parts = (inspect.getdoc(getattr(module, entry)) or "").split("\n\n")
        parts = parts[1:] if parts[0].startswith(f"{entry}(") else parts
        text = " ".join(re.sub("[`*]", "", parts[0]).split()) if parts else ""
        if 15 < len(text) < 200 and text not in found:
            found[text] = name
encoder = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
features = encoder.embed(list(found), norm=True).astype(np.float16)
np.savez_compressed(
    Path(__file__).resolve().parents[1] / "s3vm_book" / "texts.npz",
    features=features, text=list(found), label=list(found.values()),
)  # fmt: skip
print(features.shape)
