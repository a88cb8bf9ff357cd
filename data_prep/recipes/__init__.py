"""One module a data set, each with its `RECIPE`."""
