"""Raw UCI data to tables: one recipe a data set, and where the raw files come from."""

from wdrlr.data_prep import (
    annealing,
    audiology,
    balance_scale,
    breast_cancer,
    car,
    contraceptive,
    credit_approval,
    cylinder_bands,
    hayes_roth,
    hepatitis,
    hiv,
    house_votes_84,
    kr_vs_kp,
    lymphography,
    monks_3,
    primary_tumor,
    spect,
    splice,
    tic_tac_toe,
)

# In the order of the paper's Table 1, then of its Table 2.
RECIPES = {
    module.RECIPE.name: module.RECIPE
    for module in (
        breast_cancer,
        spect,
        monks_3,
        tic_tac_toe,
        kr_vs_kp,
        balance_scale,
        hayes_roth,
        lymphography,
        car,
        splice,
        house_votes_84,
        hiv,
        primary_tumor,
        audiology,
        credit_approval,
        annealing,
        contraceptive,
        hepatitis,
        cylinder_bands,
    )
}
