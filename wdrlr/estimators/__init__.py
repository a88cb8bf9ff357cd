"""scikit-learn's interface: the classifier, its cross-validation, the radius path and the report of a fit."""
