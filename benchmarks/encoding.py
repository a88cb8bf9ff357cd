"""What the encoding of a DataFrame costs, beside scikit-learn's OneHotEncoder on the same categorical columns.

    POLARS_MAX_THREADS=1 python -m benchmarks.encoding --output benchmarks/results/encoding.csv

Each row is one step on one table: its seconds of CPU time, the best of five, those of the encoder in the same run, and
their ratio. "fit" goes from X and y to the arrays of the solver and is compared with ``fit_transform``; the predictions
are whole calls, compared with ``transform``. Merging equal rows, a step of a fit that no encoder has, is apart.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from wdrlr import WassersteinLogisticRegression, load_dataset
from wdrlr.estimators.formulation import Posed
from wdrlr.model.problem import merge_duplicates
from wdrlr.solvers.solution import Solution

TABLES: dict[str, tuple[tuple[int, ...], int]] = {
    "eight features": ((2, 3, 5, 8, 12, 16, 23, 30), 8),
    "one of 3,000 levels": ((3000, 2, 3, 4, 5, 6), 5),
    "three of 500 levels": ((500, 500, 500), 0),
}
"""The levels of each categorical column, and the number of columns of numbers; "audiology" is the data set."""
DTYPES: dict[str, Callable[[pd.Series], Any]] = {
    "object": lambda text: text.astype(object),
    "str": lambda text: text.astype("str"),
    "category": lambda text: text.astype("category"),
    "integers": lambda text: pd.Series(pd.factorize(text)[0]).astype("category"),
    "polars": lambda text: text.astype("str"),
}
"""What a column of text becomes; the last is a polars table of strings."""
REPEATS = 5


def text_table(name: str, n_rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """The table with its categories as text, and labels; shape (N,)."""
    if name == "audiology":
        data = load_dataset(name)
        return data.X.astype("str"), np.asarray(data.y)
    n_levels, n = TABLES[name]
    rng = np.random.default_rng(0)
    categories = {f"z{j}": np.array([f"level {v}" for v in range(K)]) for j, K in enumerate(n_levels)}
    columns: dict[str, Any] = {c: rng.choice(levels, n_rows) for c, levels in categories.items()}
    columns |= {f"x{j}": rng.normal(size=n_rows) for j in range(n)}
    return pd.DataFrame(columns), rng.choice([-1.0, 1.0], n_rows)


def with_dtype(text: pd.DataFrame, dtype: str) -> tuple[Any, Any]:
    """The table whose text has that dtype, and its categorical columns alone."""
    named = [name for name in text.columns if text[name].dtype != float]
    table = text.assign(**{name: DTYPES[dtype](text[name]) for name in named})
    if dtype == "polars":
        table = pl.from_pandas(table)
    return table, table[named]


def encode(model: WassersteinLogisticRegression, X: Any, y: np.ndarray) -> Posed:
    """What ``fit`` does before it merges equal rows and solves."""
    formulation = model._formulation()
    table, labels, weights = model._learn(X, y, None, formulation.categorical_features)
    return formulation.pose(formulation.encode(table), table, labels, weights, merge=False)


def encoded(model: WassersteinLogisticRegression, X: Any, y: np.ndarray) -> Posed:
    """As ``encode``; the model then predicts, with random coefficients."""
    posed = encode(model, X, y)
    b = np.random.default_rng(0).normal(size=posed.problem.n_coefficients)
    model._keep(model._formulation(), posed, Solution(b, 1.0, 1.0, 0.0))
    return posed


def least_seconds(call: Callable[[], Any]) -> float:
    """CPU time of the fastest of a few calls."""
    seconds = []
    for _ in range(REPEATS):
        start = process_time()
        call()
        seconds.append(process_time() - start)
    return min(seconds)


def rows_of(name: str, dtype: str, n_rows: int = 30_000) -> Iterator[dict]:
    """The rows of one table."""
    text, y = text_table(name, n_rows)
    X, categories = with_dtype(text, dtype)
    model, encoder = WassersteinLogisticRegression(handle_unknown="ignore"), OneHotEncoder(handle_unknown="ignore")
    problem = encoded(model, X, y).problem
    learn = least_seconds(partial(encoder.fit_transform, categories))
    transform = least_seconds(partial(encoder.transform, categories))
    steps: dict[str, tuple[Callable[[], Any], float]] = {
        "fit": (partial(encode, model, X, y), learn),
        "merge": (partial(merge_duplicates, problem.x, problem.z, problem.y, problem.w), learn),
        "decision_function": (partial(model.decision_function, X), transform),
        "predict": (partial(model.predict, X), transform),
        "predict_proba": (partial(model.predict_proba, X), transform),
    }
    for step, (call, encoder_seconds) in steps.items():
        seconds = least_seconds(call)
        yield {
            "table": name,
            "dtype": dtype,
            "rows": len(y),
            "numbers": problem.n_numeric,
            "categories": problem.n_categorical,
            "levels": sum(problem.n_levels),
            "step": step,
            "seconds": seconds,
            "seconds_encoder": encoder_seconds,
            "ratio": seconds / encoder_seconds,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, help="a csv file to write the table to")
    parser.add_argument("--tables", nargs="+", choices=["audiology", *TABLES], default=["audiology", *TABLES])
    arguments = parser.parse_args()
    rows: list[dict] = []
    with threadpool_limits(1):
        for name in tqdm(arguments.tables):
            for dtype in DTYPES:
                rows += rows_of(name, dtype)
                if arguments.output:
                    pd.DataFrame(rows).to_csv(arguments.output, index=False)
    table = pd.DataFrame(rows).pivot_table(index=["table", "dtype"], columns="step", values="ratio")
    print(table.round(2).to_string())


if __name__ == "__main__":
    main()
