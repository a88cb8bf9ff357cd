"""One module per data set, each with its `RECIPE`."""
