"""Benchmarks organised as in benchopt: data sets, solvers, and an objective that no solver evaluates itself.

python -m benchmarks.run          all parts; see its --help
python -m benchmarks.fuzz         random problems, each fit checked by independent code
"""

import os

# One thread. The libraries read these variables when they are loaded, which is after this module.
for _name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
    os.environ[f"{_name}_NUM_THREADS"] = "1"
