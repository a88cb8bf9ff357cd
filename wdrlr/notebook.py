"""What the notebooks need of a notebook: the check of their parameters."""

import ast
import difflib
import warnings
from collections.abc import Iterator, Mapping
from types import GenericAlias


def check_parameters(namespace: Mapping[str, object], **declared: type | GenericAlias) -> None:
    """Stop the notebook unless its parameters are the declared ones, each of the declared kind.

    papermill puts the values it was given into a cell of their own right after the cell tagged
    ``parameters``, and only logs a line for a name which that cell does not have. This call belongs into the
    next cell: it looks at what IPython's history says was assigned from the parameters cell up to here, so
    names that the rest of the notebook makes do not matter, however often cells are run again.

    From here on warnings are shown as one line, without the file of the kernel that holds the cell's code.

    Parameters
    ----------
    namespace
        The notebook's ``globals()``.
    **declared
        Kind of each parameter: bool, int, float (an int will do), str, or a list of one of these such as
        ``list[str]``. A bool is no int.

    Raises
    ------
    NameError
        If a value was given to a parameter that does not exist, or a declared one has none.
    TypeError
        If a value is of the wrong kind.
    """
    warnings.formatwarning = lambda message, category, *_, **__: f"{category.__name__}: {message}\n"
    for name in _assigned_before_check(namespace.get("In", []), set(declared)):
        if name not in declared:
            close = difflib.get_close_matches(name, declared, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise NameError(f"unknown parameter {name!r}.{hint} The parameters are: {', '.join(declared)}.")
    for name, kind in declared.items():
        if name not in namespace:
            raise NameError(f"parameter {name!r} has no value: run the cell tagged 'parameters' first.")
        _check_kind(name, namespace[name], kind)


def _assigned_before_check(history: list[str], declared: set[str]) -> Iterator[str]:
    """Names assigned at the top level of the newest parameters cell and in the cells up to the check."""
    trees = [_parse(source) for source in history]
    starts = [i for i, tree in enumerate(trees) if declared & {*_names(tree, ast.AnnAssign)}]
    for tree in trees[starts[-1] :] if starts else []:
        if any(isinstance(node, ast.Call) and ast.unparse(node.func) == "check_parameters" for node in ast.walk(tree)):
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


def _check_kind(name: str, value: object, kind: type | GenericAlias) -> None:
    if isinstance(kind, GenericAlias):
        (item,) = kind.__args__
        if isinstance(value, list) and all(_is(entry, item) for entry in value):
            return
        remedy = (
            f"; a list needs papermill's -y or -f, for example -y '{name}: [a, b]' (-p gives text)"
            if isinstance(value, str)
            else ""
        )
        raise TypeError(f"parameter {name!r} must be a list of {item.__name__}, got {value!r}{remedy}.")
    if not _is(value, kind):
        remedy = "; in YAML write 1.0e-3, not 1e-3" if isinstance(value, str) and kind is float else ""
        raise TypeError(f"parameter {name!r} must be {kind.__name__}, got {value!r} ({type(value).__name__}){remedy}.")


def _is(value: object, kind: type) -> bool:
    return type(value) is kind or (kind is float and type(value) is int)
