"""The architecture in one picture: `python docs/architecture.py` draws docs/architecture.svg.

The layers say what may import what, and tests/test_docs.py checks them against the code and the picture against them.
"""

from html import escape
from pathlib import Path

PICTURE = Path(__file__).with_name("architecture.svg")

# From top to bottom; a module imports from its own layer and from those below.
LAYERS = {
    "shown": ["tables", "significance", "differences", "plots"],
    "computed": ["experiments", "methods", "variants", "results", "dask_workers", "runtimes", "one_feature"],
    "classifiers": ["estimator", "cross_validation", "path", "report", "baselines"],
    "solvers": [
        *("tailored", "kernels", "column_constraint", "programs", "conic"),
        *("solution", "closed_form", "dual_repair", "largest_radius"),
    ],
    "adversary": ["separation", "cuts", "certificate", "worst_case"],
    "problem": ["metric", "problem", "units", "encoding", "synthetic"],
    "ground": ["datasets", "protocols", "paper", "paths", "notebook", "compilation"],
}
ABOUT = {
    "shown": "the paper's values beside ours",
    "computed": "a cell: one method, one split",
    "classifiers": "scikit-learn's interface",
    "solvers": "Algorithm 1, and a faster one",
    "adversary": "Algorithm 2, Theorems 1 and 8",
    "problem": "Definition 2, problem (2)",
    "ground": "what all others may use",
}
WIDTH, ROW, LEFT, RIGHT = 900, 62, 250, 750


def draw() -> str:
    """The picture as svg."""
    height = ROW * (len(LAYERS) + 2) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="14">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
    ]
    folders = ["notebooks/", *(["wdrlr/"] * len(LAYERS)), "data_prep/"]
    rows = [
        ("notebooks", "one a table or figure", ["parameters, a call or two, the comparison with the paper"]),
        *((name, ABOUT[name], _wrapped(modules)) for name, modules in LAYERS.items()),
        ("data_prep", "UCI's raw files to tables", ["one recipe a data set, raw files checked by sha256"]),
    ]
    for i, ((name, about, lines), folder) in enumerate(zip(rows, folders, strict=True)):
        top = 5 + i * ROW
        fill = "#e8f0f8" if folder == "wdrlr/" else "#f6ecd8"
        parts.append(f'<rect x="10" y="{top}" width="{RIGHT - 10}" height="{ROW - 10}" rx="6" fill="{fill}"/>')
        parts.append(_text(22, top + 22, name, 'font-weight="bold"'))
        parts.append(_text(22, top + 41, about, 'font-size="12" fill="#555"'))
        first = top + 31 - 9 * (len(lines) - 1)
        parts += [_text(LEFT, first + 18 * j, line) for j, line in enumerate(lines)]
    middle = {name: 5 + (i + 1) * ROW + (ROW - 10) / 2 for i, name in enumerate(LAYERS)}
    for name, folder in (("shown", "figures/"), ("computed", "figures/results/")):
        parts.append(_arrow(RIGHT, middle[name], RIGHT + 30, middle[name]))
        parts.append(_text(RIGHT + 36, middle[name] + 5, folder))
    parts.append(_arrow(RIGHT + 70, middle["computed"] - 14, RIGHT + 70, middle["shown"] + 14))
    parts.append(_text(RIGHT + 14, middle["solvers"], "imports", 'fill="#555"'))
    parts.append(_text(RIGHT + 14, middle["solvers"] + 18, "go down only", 'fill="#555"'))
    parts.append(_arrow(RIGHT + 60, middle["solvers"] + 30, RIGHT + 60, middle["ground"]))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _wrapped(modules: list[str]) -> list[str]:
    """The names in one line, or in two if they are many."""
    half = len(modules) if len(modules) <= 5 else (len(modules) + 1) // 2
    return [", ".join(part) for part in (modules[:half], modules[half:]) if part]


def _text(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" {style}>{escape(text)}</text>'


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="#555" marker-end="url(#tip)"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
