"""Print how many rows, numbers, slopes and categories each data set has, beside the paper's counts."""

import pandas as pd

from wdrlr.paper.counts import dataset_counts


def as_markdown(counts: pd.DataFrame) -> str:
    """Write the counts as a table, readable as text and as Markdown, with the paper's in brackets if they differ."""
    header = ["data set", "N", "n", "k", "m"]
    rows = []
    for name, row in counts.iterrows():
        cells = [name]
        for count in header[1:]:
            ours, paper = row[count], row[f"{count}_paper"]
            ours = "-" if pd.isna(ours) else str(ours)
            cells.append(ours if pd.isna(paper) or ours == str(paper) else f"{ours} ({paper})")
        rows.append(cells)
    widths = [max(len(cells[i]) for cells in [header, *rows]) for i in range(len(header))]
    rules = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        "| " + " | ".join([cells[0].ljust(widths[0]), *map(str.rjust, cells[1:], widths[1:])]) + " |"
        for cells in [header, rules, *rows]
    ]
    reasons = [f"- {name}: {reason}." for name, reason in counts["reason"].items() if reason]
    return "\n".join([*lines, "", "The paper's count is in brackets where it differs:", "", *reasons])


if __name__ == "__main__":
    print(as_markdown(dataset_counts()))
