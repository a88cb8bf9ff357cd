"""Benchmarks in the shape of benchopt: data sets, solvers, and an objective that no solver evaluates itself.

python -m benchmarks.run          all parts; see its --help
python -m benchmarks.fuzz         random problems, each fit judged from outside
"""

import os

# One thread. The libraries read these when they are loaded, and this is loaded before them.
for _name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"
