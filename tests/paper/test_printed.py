import pytest

from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import TABLES, published_counts, published_values


@pytest.mark.parametrize("table, n_datasets", [("table1", 14), ("table2", 5), ("table3", 5), ("table4", 14)])
def test_every_data_set_of_a_table_has_a_cell_for_every_method(table, n_datasets):
    cells = published_values(table)
    assert cells["table"].eq(table).all() and cells.index.tolist() == list(range(9 * n_datasets))
    assert [list(rows["method"]) for _, rows in cells.groupby("dataset")] == [list(METHODS)] * n_datasets
    assert cells["value"].notna().all() and (cells["value"] >= 0).all()
    of_pi = cells["method"].eq("PI") & (table in ("table3", "table4"))
    assert (cells["value_identification_s"].notna() == of_pi).all()


def test_values_read_off_the_paper():
    values = {table: published_values(table).set_index(["dataset", "method"]) for table in TABLES}
    assert values["table1"].loc[("tic-tac-toe", "DRO_kappa_m"), "value"] == 1.67
    assert values["table2"].loc[("hepatitis", "LR"), "value"] == 16.13
    assert values["table4"].loc[("spect", "DRO_kappa_1"), "value"] == 32.05
    assert values["table1"].loc[("tic-tac-toe", "LR"), ["N", "n", "k", "m"]].tolist() == [958, 0, 18, 9]


def test_a_data_set_has_the_same_sizes_in_both_of_its_tables():
    counts = published_counts()
    assert len(counts) == 19 and (counts["m"] <= counts["k"]).all()
    for table in TABLES:
        cells = published_values(table)
        assert cells[["N", "n", "k", "m"]].eq(counts.loc[cells["dataset"]].set_axis(cells.index)).all(axis=None)


def test_unknown_table_of_the_paper():
    with pytest.raises(ValueError, match="unknown table 'table5'"):
        published_values("table5")
