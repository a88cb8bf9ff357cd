"""The tailored interior-point method; docs/interior_point.md derives it."""
