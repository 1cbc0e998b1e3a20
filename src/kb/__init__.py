"""kb: a fully local knowledge base for people and their AI agents."""

import os

# A search multiplies small matrices. Threads of BLAS wait for each other longer than that takes, and several searches
# run side by side. It reads this when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "3.0.0"
