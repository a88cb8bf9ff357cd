"""The paper's experiments: what is printed, the protocols and methods, cells, tables and figures."""
