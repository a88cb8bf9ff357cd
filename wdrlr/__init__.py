"""Wasserstein logistic regression with mixed features (Selvi, Belbasi, Haugh and Wiesemann, NeurIPS 2022)."""
