"""kb: a fully local knowledge base for people and their AI agents."""

import os

# A search multiplies small matrices. BLAS threads wait for each other longer than that takes, and several searches run
# in parallel. The setting is read when numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "3.0.0"
