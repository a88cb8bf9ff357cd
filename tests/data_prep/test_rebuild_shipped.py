"""The script that rebuilds the shipped files, on stand-ins for the two packages' files."""

from __future__ import annotations

import pytest

from wdrlr.data_prep import rebuild_shipped as script
from wdrlr.data_prep.recipe import ChecksumError
from wdrlr.data_prep.sources import SHIPPED, checksums
from wdrlr.paper.printed import published_counts

# The packages have the paper's data sets only.
SHIPPED_FILES = {f"{name}/{path.name}" for name in published_counts().index for path in SHIPPED.glob(f"{name}/*")}


def words(codes):
    back = {column: {code: word for word, code in pairs.items()} for column, pairs in codes.items()}
    return lambda row: [back.get(i, {}).get(value, value) for i, value in enumerate(row)]


def car(row):
    words = {"vhigh": "v-high", "vgood": "v-good", "5more": "5-more"}
    return [words.get(value, value) for value in row]


def credit(row):
    numbers = {i: value if value == "?" else f"{float(value):g}" for i, value in enumerate(row) if i in (1, 10, 13)}
    return [numbers.get(i, value) for i, value in enumerate(row)]


ORANGE = {
    "balance-scale.tab": (["balance-scale/balance-scale.data"], list),
    "breast-cancer.tab": (["breast-cancer/breast-cancer.data"], list),
    "car.tab": (["car/car.data"], car),
    "crx.tab": (["credit-approval/crx.data"], credit),
    "hayes-roth_learn.tab": (["hayes-roth/hayes-roth.data"], list),
    "hayes-roth_test.tab": (["hayes-roth/hayes-roth.test"], list),
    "voting.tab": (
        ["house-votes-84/house-votes-84.data"],
        lambda row: ["" if value == "?" else value for value in row],
    ),
    "lymphography.tab": (["lymphography/lymphography.data"], words(script.LYMPHOGRAPHY_CODES)),
    "monks-3_learn.tab": (["monks-3/monks-3.train"], list),
    "monks-3_test.tab": (["monks-3/monks-3.test"], list),
    "primary-tumor.tab": (["primary-tumor/primary-tumor.data"], words(script.PRIMARY_TUMOR_CODES)),
    "tic_tac_toe.tab": (["tic-tac-toe/tic-tac-toe.data"], lambda row: [*row[:-1], row[-1][0]]),
    "anneal.tab": (["annealing/anneal.data", "annealing/anneal.test"], list),
}


@pytest.fixture
def packages(tmp_path):
    folder = tmp_path / "packages"
    (folder / "Orange/datasets").mkdir(parents=True)
    for name, (sources, edit) in ORANGE.items():
        text = "".join((SHIPPED / source).read_text() for source in sources)
        rows = [line.split() if "monks" in name else line.split(",") for line in text.splitlines()]
        lines = ["names", "kinds", "roles", *("\t".join(edit(row)) for row in rows)]
        (folder / "Orange/datasets" / name).write_text("\n".join(lines) + "\n")
    chess = (SHIPPED / "kr-vs-kp/kr-vs-kp.data").read_bytes()
    (folder / "chess.dat").write_bytes(chess.removesuffix(b"\n\n"))
    (folder / "contraceptive.dat").write_bytes((SHIPPED / "contraceptive/cmc.data").read_bytes())
    return folder


def test_rebuilds_every_shipped_file_of_the_paper(packages, tmp_path, capsys):
    script.main(packages, tmp_path / "raw")
    printed = capsys.readouterr().out.splitlines()
    assert sorted(printed) == sorted(f"{checksums()[name]}  {name}" for name in checksums() if name in SHIPPED_FILES)
    rebuilt = {str(path.relative_to(tmp_path / "raw")): path for path in (tmp_path / "raw").glob("*/*")}
    assert set(rebuilt) == SHIPPED_FILES
    for name, path in rebuilt.items():
        assert path.read_bytes() == (SHIPPED / name).read_bytes()


def test_a_changed_package_file_writes_nothing(packages, tmp_path):
    changed = packages / "Orange/datasets/tic_tac_toe.tab"
    changed.write_text(changed.read_text().replace("\tp\n", "\tn\n", 1))
    with pytest.raises(ChecksumError, match=r"tic-tac-toe/tic-tac-toe\.data, as rebuilt,"):
        script.main(packages, tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


def test_a_missing_package_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"anneal\.tab is not under"):
        script.main(tmp_path)


def test_a_word_without_a_code_is_refused():
    with pytest.raises(KeyError, match="unheard"):
        script.encode({0: {"no": "1"}})(["unheard"])
