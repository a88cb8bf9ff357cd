"""What the notebooks need of a notebook: the check of their parameters, before anything is computed or written.

A kind of parameter is a function of its value (`Kind`). Nothing that takes seconds to import is imported here, so that
a wrong parameter is refused at once. That is why names which slow modules define (`BACKENDS`, ...) are written down a
second time; a test compares the two.
"""

import ast
import difflib
import operator
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from joblib import cpu_count

from wdrlr.datasets import DATASETS
from wdrlr.paper.counts import datasets_for
from wdrlr.paper.paths import project_root
from wdrlr.paper.printed import published_values
from wdrlr.paper.protocols import PROTOCOLS

Kind = Callable[[Any], str]
"""From a value to what it must be, in words; "" if that is what it is."""

BACKENDS = ("loky", "sequential", "dask")
SOLVERS = ("tailored", "column-constraint", "monolithic")
TRIED = (
    "house-votes-84",
    "primary-tumor",
    "spect",
    "hayes-roth",
    "lymphography",
    "balance-scale",
    "tic-tac-toe",
    "monks-3",
    "breast-cancer",
)
"""Data sets of the notebook `differences`."""

JOBS_PER_CORE = 4
"""The most worker processes per core; beyond one per core they take more memory and are no faster."""


def check_parameters(namespace: Mapping[str, object], **declared: Kind) -> None:
    """Stop the notebook unless its parameters are the declared ones, each of its kind.

    papermill puts the values it was given into a cell of their own right after the cell tagged ``parameters``, and only
    logs a line for a name which that cell does not have, or if there is no such cell. This call belongs in the next
    cell: it looks at what IPython's history says was assigned from the parameters cell up to here, so names that the
    rest of the notebook makes do not matter, however often cells are run again.

    From here on warnings are shown as one line, without the file of the kernel that holds the cell's code.

    Parameters
    ----------
    namespace
        The notebook's ``globals()``.
    **declared
        Kind of each parameter.

    Raises
    ------
    RuntimeError
        If values were given to a notebook without a cell tagged ``parameters``.
    NameError
        If a value was given to a parameter that does not exist, or a declared one has none.
    ValueError
        If a value is not of its kind.
    """
    warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
    history = namespace.get("In", [])
    if lost := _overridden(history, set(declared)):
        raise RuntimeError(
            f"papermill found no cell tagged 'parameters', so what was given for {', '.join(lost)} would not be used. "
            "Give the cell with the defaults this tag again (in JupyterLab: property inspector, Cell Tags), or take "
            "the notebook that comes with the project."
        )
    for name in _assigned_before_check(history, set(declared)):
        if name not in declared:
            close = difflib.get_close_matches(name, declared, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise NameError(f"unknown parameter {name!r}.{hint} The parameters are: {', '.join(declared)}.")
    for name, kind in declared.items():
        if name not in namespace:
            raise NameError(f"parameter {name!r} has no value: run the cell tagged 'parameters' first.")
        value = namespace[name]
        if wanted := kind(value):
            raise ValueError(f"parameter {name!r} must be {wanted}, got {value!r} ({type(value).__name__}).")


def _overridden(history: Sequence[str], declared: set[str]) -> list[str]:
    """Names to which papermill gave a value in vain.

    A kernel does not see its notebook's tags. But without the tag papermill puts its cell, which begins with a comment
    of its own, at the top of the notebook, where the cell with the defaults then undoes it; with the tag such a cell
    comes first.
    """
    for source in history:
        assigned = [*_names(_parse(source), ast.Assign, ast.AnnAssign)]
        if source.startswith("# Parameters\n"):
            return assigned
        if declared & set(assigned):
            return []
    return []


def _assigned_before_check(history: Sequence[str], declared: set[str]) -> Iterator[str]:
    """Names assigned at the top level of the newest parameters cell and in the cells up to the check."""
    trees = [_parse(source) for source in history]
    starts = [i for i, tree in enumerate(trees) if declared & {*_names(tree, ast.AnnAssign)}]
    for tree in trees[starts[-1] :] if starts else []:
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        if any(call.rpartition(".")[2] == "check_parameters" for call in calls):
            return
        yield from _names(tree, ast.Assign, ast.AnnAssign)


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:  # a cell that failed; it has assigned nothing
        return ast.Module([], [])


def _names(tree: ast.Module, *kinds: type[ast.stmt]) -> Iterator[str]:
    for statement in tree.body:
        if isinstance(statement, kinds):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


# Kinds


def integer(least: int, most: int) -> Kind:
    """An integer in these bounds; bools and floats are refused."""
    return lambda value: (
        "" if type(value) is int and least <= value <= most else f"an integer from {least:,} to {most:,}"
    )


seed = integer(0, 2**31 - 1)
"""What all random generators take; scikit-learn's take no more than 32 bits."""


def number(
    *, least: float | None = None, most: float | None = None, above: float | None = None, below: float | None = None
) -> Kind:
    """A finite number in these bounds; an integer will do, a bool will not."""
    bounds = [
        (words, holds, bound)
        for words, holds, bound in (
            ("at least", operator.ge, least),
            ("above", operator.gt, above),
            ("at most", operator.le, most),
            ("below", operator.lt, below),
        )
        if bound is not None
    ]
    words = "a number " + " and ".join(f"{words} {bound:g}" for words, _, bound in bounds)

    def kind(value: Any) -> str:
        if isinstance(value, str):
            return f"{words} (in YAML write 1.0e-3, not 1e-3)"
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            return words
        return "" if all(holds(value, bound) for _, holds, bound in bounds) else words

    return kind


def boolean(value: Any) -> str:
    """True or False; papermill takes other spellings for text."""
    return "" if type(value) is bool else "True or False"


def one_of(*names: str) -> Kind:
    """One of these texts."""

    def kind(value: Any) -> str:
        if isinstance(value, str) and value in names:
            return ""
        close = difflib.get_close_matches(str(value), names, n=1)
        meant = f"did you mean {close[0]!r}?" if isinstance(value, str) and close else "as text, in quotes"
        hint = f" ({meant})" if close else ""
        return f"one of {', '.join(map(repr, names))}{hint}"

    return kind


backend = one_of(*BACKENDS)
solver = one_of(*SOLVERS)
protocol = one_of(*PROTOCOLS)


def list_of(item: Kind, *, repeats: bool = False) -> Kind:
    """A list with entries of this kind, at least one, and none twice unless `repeats`."""
    words = "a non-empty list" if repeats else "a non-empty list without repeats"

    def kind(value: Any) -> str:
        if isinstance(value, str):
            return f"{words} (papermill's -p gives text, for a list use -y 'NAME: [a, b]')"
        if not isinstance(value, list) or not value:
            return words
        for entry in value:
            if wanted := item(entry):
                return f"{words}, each entry {wanted}"
        return "" if repeats or len(set(value)) == len(value) else words

    return kind


def methods(value: Any) -> str:
    """Some columns of the tables, or ``["all"]``."""
    wanted = list_of(one_of(*published_values("table1")["method"].unique()))(value)
    return f"['all'], or {wanted}" if wanted and value != ["all"] else ""


def dataset(table: str | None = None) -> Kind:
    """One of the data sets, or of those in one of the paper's tables or in none of them; then also "all"."""
    return one_of(*DATASETS) if table is None else one_of("all", *datasets_for(table))


def jobs(backend: Any) -> Kind:
    """A number of worker processes as joblib counts: -1 is one per core, -2 leaves one core free.

    The workers of dask can be on many machines, so that the cores of this one say nothing about them.
    """
    cores = cpu_count()
    most = 1_000_000 if backend == "dask" else JOBS_PER_CORE * cores

    def kind(value: Any) -> str:
        if type(value) is int and value != 0 and -cores <= value <= most:
            return ""
        bound = "" if backend == "dask" else f", {JOBS_PER_CORE} for each core of this machine"
        return f"an integer from 1 to {most:,}{bound}, or -1 for one per core"

    return kind


def scheduler(backend: Any) -> Kind:
    """The address of a dask scheduler, or ""; the other backends have none."""

    def kind(value: Any) -> str:
        if not isinstance(value, str) or any(letter.isspace() for letter in value):
            return "an address such as tcp://host:8786, or empty"
        return "empty unless backend is 'dask'" if value and backend != "dask" else ""

    return kind


def figures_folder(value: Any) -> str:
    """A folder to write into, made later if it is not there; "" is the project's."""
    return _folder(value, project_root() / "figures", written=True)


def results_folder(compute_missing: Any) -> Kind:
    """A folder for rows; it must be there if nothing is computed. "" is the project's."""
    return lambda value: _folder(value, project_root() / "figures" / "results", written=compute_missing is not False)


def _folder(value: Any, default: Path, *, written: bool) -> str:
    if not isinstance(value, str):
        return "the path of a folder as text, or empty"
    try:
        folder = Path(value).expanduser().resolve() if value else default
        if written:
            _try_to_write(folder)
        elif not folder.is_dir():
            return f"an existing folder, unless compute_missing is True (there is no folder {folder})"
    except (OSError, RuntimeError, ValueError) as error:  # the last two: ~ of an unknown user, a null character
        reason = getattr(error, "strerror", None) or error
        return f"a folder that exists or can be made, and is writable ({value or default}: {reason}); name another"
    return ""


def _try_to_write(folder: Path) -> None:
    """Raise an OSError unless files can be written into the folder, made before if need be; leave no trace."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    with tempfile.TemporaryDirectory(dir=there) as trial:
        (Path(trial) / folder.relative_to(there)).mkdir(parents=True, exist_ok=True)
