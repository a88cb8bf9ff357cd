"""The check of a notebook's parameters, before it computes or writes anything.

The cell tagged ``parameters`` is the only list of a notebook's parameters, and papermill reads the same cell. A
parameter's kind is the entry of `KINDS` under its annotation, or else under its name: a function of the value. So that
a wrong value is refused at once, this module imports nothing that takes long; kinds that need the catalogue of data
sets or a registry import it when they are called, and are called last. For the same reason names defined in slow
modules (`BACKENDS`, ...) are repeated here; a test compares them.
"""

import ast
import difflib
import operator
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from wdrlr.extras import check_installed
from wdrlr.paper.paths import NoProjectError, chosen_folder

Kind = Callable[[Any], str]
"""Maps a value to "" if it is valid, and otherwise to a description of valid values."""

TABLES = ("table1", "table2", "table3", "table4")
BACKENDS = ("loky", "sequential", "dask")
SOLVERS = ("tailored", "column-constraint", "monolithic")
CONIC_SOLVERS = ("CLARABEL", "MOSEK", "SCS", "auto")
PROTOCOLS = ("code", "paper")
PROPOSED = ("DRO_kappa_1", "DRO_kappa_m", "r-DRO_kappa_1", "r-DRO_kappa_m")
GRIDS = ("full", "quick")
LABEL_COSTS = ("1", "m")
JOBS_PER_CORE = 4
"""Upper bound on worker processes per core; more than one per core takes more memory and is no faster."""


def check_parameters(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Stop the notebook unless its parameters are those that its parameters cell declares, each of its kind.

    papermill puts the values it is given into a new cell right after the one tagged ``parameters``. If that cell lacks
    a name, or there is no such cell, papermill merely logs a line. Call this function in the next cell: it checks what
    was assigned, according to IPython's history, from the parameters cell up to the call, so names defined elsewhere
    in the notebook do not matter, however often cells are run again.

    It also makes later warnings show as one line, without the path of the kernel's file for the cell.

    Parameters
    ----------
    namespace
        The notebook's ``globals()``.

    Returns
    -------
    The parameters by name, in the order of the cell.

    Raises
    ------
    RuntimeError
        If values were passed to a notebook without a cell tagged ``parameters``.
    NameError
        If a value was passed for an unknown parameter, or a parameter has no value or no kind.
    ValueError
        If a value is not of its kind.
    ImportError
        If the extra "notebooks" is not installed.
    """
    warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
    history = [(source, _parse(source)) for source in namespace.get("In", [])]
    if lost := _overridden(history):
        raise RuntimeError(
            f"papermill found no cell tagged 'parameters', so the values given for {', '.join(lost)} would not be "
            "used. Tag the cell with the defaults again (in JupyterLab: property inspector, Cell Tags), or use the "
            "notebook that comes with the project."
        )
    cells = _since_parameters(tree for _, tree in history)
    declared = _annotations(cells[0]) if cells else namespace.get("__annotations__", {})  # the latter in a script
    if not declared:
        raise NameError("the parameters have no values: run the cell tagged 'parameters' first.")
    for name in (name for tree in cells for name in _names(tree)):
        if name not in declared:
            hint = _did_you_mean(name, declared)
            raise NameError(f"unknown parameter {name!r}.{hint} The parameters are: {', '.join(declared)}.")
    for name in declared:
        if name not in namespace:
            raise NameError(f"parameter {name!r} has no value: run the cell tagged 'parameters' first.")
    keys = {name: _key(name, annotation) for name, annotation in declared.items()}
    for name in sorted(keys, key=lambda name: (keys[name] in IMPORTING_KINDS, name in DEPENDENT_KINDS)):
        value = namespace[name]
        if wanted := _kind(keys[name], namespace)(value):
            raise ValueError(f"parameter {name!r} must be {wanted}, got {value!r} ({type(value).__name__}).")
    for package in ("filelock", "matplotlib", "seaborn", "tqdm"):  # for later cells, some of which wait for minutes
        check_installed(package, "a notebook", "notebooks")
    return {name: namespace[name] for name in declared}


def _key(name: str, annotation: object) -> str:
    """Under what the kind of a parameter is found."""
    for key in (name,) if name in DEPENDENT_KINDS else (annotation, name):
        if isinstance(key, str) and key in _known():
            return key
    raise NameError(f"parameter {name!r} has no kind in wdrlr.paper.notebook.{_did_you_mean(name, _known())}")


def _kind(key: str, namespace: Mapping[str, Any]) -> Kind:
    if key in DEPENDENT_KINDS:
        other, kind_for = DEPENDENT_KINDS[key]
        return kind_for(namespace.get(other))
    return KINDS[key]


def _known() -> set[str]:
    return KINDS.keys() | DEPENDENT_KINDS.keys()


def _did_you_mean(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def _overridden(history: Sequence[tuple[str, ast.Module]]) -> list[str]:
    """The names whose values, as passed to papermill, are overwritten by the defaults.

    A kernel does not see its notebook's tags. But without the tag papermill puts its cell, which begins with a
    characteristic comment, at the top of the notebook, where the cell with the defaults then overwrites it. With the
    tag, the cell with the defaults comes first.
    """
    for source, tree in history:
        if source.startswith("# Parameters\n"):
            return [*_names(tree)]
        if _known() & _annotations(tree).keys():
            return []
    return []


def _since_parameters(trees: Iterable[ast.Module]) -> list[ast.Module]:
    """The newest parameters cell, and the cells after it up to the check; empty if it was not run.

    The newest parameters cell is the first cell after the last check that annotates parameters, or a later cell that
    repeats most of these annotations.
    """
    cells: list[ast.Module] = []
    checked = True
    for tree in trees:
        annotated = _annotations(tree).keys()
        again = not checked and 2 * len(annotated & _annotations(cells[0]).keys()) > len(_annotations(cells[0]))
        if again or (checked and annotated & _known()):
            cells, checked = [], False
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        checked |= any(call.rpartition(".")[2] == "check_parameters" for call in calls)
        if not checked:
            cells.append(tree)
    return cells


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError:  # the cell failed, so it assigned nothing
        return ast.Module([], [])


def _annotations(tree: ast.Module) -> dict[str, str]:
    """Annotations at the top level by name; quotes around an annotation are dropped."""
    return {
        statement.target.id: ast.unparse(statement.annotation).strip("\"'")
        for statement in tree.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def _names(tree: ast.Module) -> Iterator[str]:
    """The names assigned at the top level."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


# Kinds


def integer(least: int, most: int) -> Kind:
    """An integer within these bounds; bools and floats are refused."""
    return lambda value: (
        "" if type(value) is int and least <= value <= most else f"an integer from {least:,} to {most:,}"
    )


seed = integer(0, 2**31 - 1)
"""The range that all random generators accept; scikit-learn's accept no more than 32 bits."""


def number(
    *, least: float | None = None, most: float | None = None, above: float | None = None, below: float | None = None
) -> Kind:
    """A finite number within these bounds; an integer will do, a bool will not."""
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
    """True or False; papermill treats other spellings as text."""
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


def list_of(item: Kind, *, repeats: bool = False) -> Kind:
    """A non-empty list of entries of this kind, without repeats unless they are allowed."""
    words = "a non-empty list" if repeats else "a non-empty list without repeats"

    def kind(value: Any) -> str:
        if isinstance(value, str):
            return f"{words} (papermill's -p passes text; for a list use -y 'NAME: [a, b]')"
        if not isinstance(value, list) or not value:
            return words
        for entry in value:
            if wanted := item(entry):
                return f"{words}, each entry {wanted}"
        return "" if repeats or len(set(value)) == len(value) else words

    return kind


def registered(names: Iterable[str], module: str, registry: str) -> Kind:
    """One of these texts, or of those in a registry that takes long to import and may have more by now."""

    def kind(value: Any) -> str:
        return one_of(*names)(value) and one_of(*getattr(import_module(module), registry))(value)

    return kind


def methods(value: Any) -> str:
    """Names of columns of the tables, or ``["all"]``."""
    from wdrlr.paper.printed import published_values

    if value == ["all"]:
        return ""
    printed = published_values("table1")["method"].unique()
    wanted = list_of(registered(printed, "wdrlr.paper.methods", "METHODS"))(value)
    return f"['all'], or {wanted}" if wanted else ""


def dataset(table: str | None = None) -> Kind:
    """One of the data sets; with a table, "all", a data set of that table, or a data set that is not in the paper."""

    def kind(value: Any) -> str:
        from wdrlr.paper.counts import DATASETS, datasets_for

        return one_of(*(DATASETS if table is None else ("all", *datasets_for(table))))(value)

    return kind


def datasets(value: Any) -> str:
    """Names of data sets, or ``["all"]``."""
    wanted = "" if value == ["all"] else list_of(dataset())(value)
    return f"['all'], or {wanted}" if wanted else ""


def jobs(backend: Any) -> Kind:
    """A number of worker processes as joblib counts them: -1 is one per core, -2 leaves one core free.

    Dask's workers can be on many machines, so for them the cores of this machine are no limit.
    """
    from joblib import cpu_count

    cores = cpu_count()
    most = 1_000_000 if backend == "dask" else JOBS_PER_CORE * cores

    def kind(value: Any) -> str:
        if type(value) is int and value != 0 and -cores <= value <= most:
            return ""
        bound = "" if backend == "dask" else f", {JOBS_PER_CORE} for each core of this machine"
        return f"an integer from 1 to {most:,}{bound}, or -1 for one per core"

    return kind


def scheduler(backend: Any) -> Kind:
    """The address of a dask scheduler, or ""; always "" for the other backends."""

    def kind(value: Any) -> str:
        if not isinstance(value, str) or any(letter.isspace() for letter in value):
            return "an address such as tcp://host:8786, or empty"
        return "empty unless backend is 'dask'" if value and backend != "dask" else ""

    return kind


def figures_folder(value: Any) -> str:
    """A folder to write into, created later if necessary; "" is the project's."""
    return _folder(value, "figures", written=True)


def results_folder(compute_missing: Any) -> Kind:
    """A folder of rows, which must exist if nothing is computed; "" is the project's."""
    return lambda value: _folder(value, "figures/results", written=compute_missing is not False)


def _folder(value: Any, default: str, *, written: bool) -> str:
    if not isinstance(value, str):
        return "the path of a folder as text, or empty"
    folder = Path(default)
    try:
        folder = chosen_folder(value, default)
        if written:
            _try_to_write(folder)
        elif not folder.is_dir():
            return f"an existing folder, unless compute_missing is True (there is no folder {folder})"
    except NoProjectError as error:
        return f"the path of a folder ({error})"
    except (OSError, RuntimeError, ValueError) as error:  # the last two: ~ of an unknown user, a null character
        reason = getattr(error, "strerror", None) or error
        return f"a folder that exists or can be made, and is writable ({value or folder}: {reason}); name another"
    return ""


def _try_to_write(folder: Path) -> None:
    """Raise an OSError unless files can be written into the folder, once it is created; leave no trace."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    with tempfile.TemporaryDirectory(dir=existing) as trial:
        (Path(trial) / folder.relative_to(existing)).mkdir(parents=True, exist_ok=True)


def gamma(worst_case_size: Any) -> Kind:
    """The part of Figure 1's radius that is left unspent."""
    radius = 0.5 / worst_case_size**0.5
    words = f"below the radius 1 / (2 sqrt(worst_case_size)) = {radius:.4f}"
    return lambda value: number(above=0)(value) or ("" if value < radius else words)


def slopes(value: Any) -> str:
    """Intercept and slopes of number and category in Theorem 3's example, ordered so that its loss has a kink."""
    if wanted := list_of(number(least=-100, most=100), repeats=True)(value):
        return wanted
    in_order = len(value) == 3 and 0.01 <= value[1] < value[2]
    return "" if in_order else "an intercept, a slope of at least 0.01 for the number and a larger one for the category"


IMPORTING_KINDS: dict[str, Kind] = {
    "data set": dataset(),
    **{f"data set of Table {table[-1]}": dataset(table) for table in TABLES},
    "list of data sets": list_of(dataset()),
    "datasets": datasets,
    "methods": methods,
    "solver": registered(SOLVERS, "wdrlr.solvers.registry", "SOLVERS"),
}
"""Those that import something that takes long; they are checked last."""

KINDS: dict[str, Kind] = {
    **IMPORTING_KINDS,
    # By annotation: names whose values differ from notebook to notebook.
    "list of proposed methods": list_of(one_of(*PROPOSED)),
    "int from 2": integer(2, 100_000),
    "float between 0 and 1": number(above=0, below=1),
    # By name.
    "n_splits": integer(1, 100_000),
    "first_split": integer(0, 1_000_000),
    "seed": seed,
    "protocol": one_of(*PROTOCOLS),
    "compute_missing": boolean,
    "backend": one_of(*BACKENDS),
    "figures_dir": figures_folder,
    "tol": number(above=0),
    "radius": number(least=0),
    "sizes": list_of(integer(2, 1_000_000)),
    "runs": integer(1, 1_000_000),
    "worst_case_size": integer(1, 1_000_000),
    "grid": one_of(*GRIDS),
    "n_runs": integer(1, 100_000),
    "label_costs": list_of(one_of(*LABEL_COSTS)),
    "time_limit": number(above=0),
    "seconds": number(above=0),
    "n_rows": integer(1, 100_000),
    "max_constraints": integer(1, 100_000_000),
    "conic_solver": one_of(*CONIC_SOLVERS),
    "slopes": slopes,
    "sample_sizes": list_of(integer(1, 1_000_000)),
    "n_features": integer(1, 16),
    "growth_features": list_of(integer(1, 1000)),
    "growth_runs": integer(1, 100_000),
    "atom_runs": integer(1, 100_000),
    "shifts": list_of(number(least=0, most=1)),
}

DEPENDENT_KINDS: dict[str, tuple[str, Callable[[Any], Kind]]] = {
    "n_jobs": ("backend", jobs),
    "scheduler": ("backend", scheduler),
    "results_dir": ("compute_missing", results_folder),
    "gamma": ("worst_case_size", gamma),
}
"""For each of these names, the parameter on whose value the kind depends, and a function from that value to the kind.
"""
