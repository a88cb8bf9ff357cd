"""Raw UCI data to tables: one recipe a data set, and where the raw files come from."""
