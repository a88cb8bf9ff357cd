"""Raw data to tables: one recipe per data set, and where the raw files come from."""

from wdrlr.data_prep.catalog import find_recipes

RECIPES = find_recipes()
"""All recipes, by name."""
