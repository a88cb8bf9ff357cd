import pytest

from wdrlr.paper.methods import METHODS
from wdrlr.paper.printed import published_values
from wdrlr.paper.trials import FAST, MOST_SPLITS, ONLY_ON, VARIANTS_OF, plan_trials
from wdrlr.paper.variants import VARIANTS


def test_changes_and_data_sets_are_known():
    assert {name for names in VARIANTS_OF.values() for name in names} == set(VARIANTS)
    assert set(VARIANTS_OF) == {name.split("_")[0] for name in METHODS}
    assert all(name in VARIANTS_OF[kind] for name, kind in ONLY_ON)
    printed = set(published_values("table1")["dataset"])
    assert {*MOST_SPLITS, *(name for names in ONLY_ON.values() for name in names)} <= printed


def test_a_plan_has_the_standard_cells_and_each_change_of_them():
    standard, variants = plan_trials("monks-3", 2, 5)
    assert [cell.key for cell in standard] == [
        ("monks-3", "code", method, 5, 1e-6, "tailored", split) for split in range(2) for method in METHODS
    ]
    of_pi = [cell.protocol.name for cell in variants if cell.method.name == "PI"]
    assert of_pi == 2 * [f"code-{name}" for name in VARIANTS_OF["PI"]]
    assert len({cell.key for cell in [*standard, *variants]}) == len(standard) + len(variants)
    assert not any(cell.protocol.name == "code-stopped" for cell in variants)
    with pytest.raises(ValueError, match="unknown data set 'annealing'; choose 'all' or one of breast-cancer"):
        plan_trials("annealing", 2, 0)


def test_what_takes_longest_is_tried_on_fewer_splits():
    standard, variants = plan_trials("audiology", 100, 0)
    for fast, most in ((False, MOST_SPLITS["audiology"]), (True, 100)):
        cells = [cell for cell in [*standard, *variants] if (cell.method.name in FAST) == fast]
        assert {cell.split for cell in cells} == set(range(most))
    assert any(cell.protocol.name == "code-stopped" for cell in variants)


def test_residue_is_tried_with_dro_where_a_conic_program_takes_seconds():
    def tried(dataset):
        return {cell.method.name for cell in plan_trials(dataset, 1, 0)[1] if "residue" in cell.protocol.name}

    assert tried("monks-3") - tried("spect") == {"DRO_kappa_1", "DRO_kappa_m"}
    assert tried("spect") == {"r-LR", "MT_kappa_1", "MT_kappa_m", "PI"}
