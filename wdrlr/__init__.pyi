from .datasets import DATASETS as DATASETS
from .datasets import load_dataset as load_dataset
from .estimators.classifier import WassersteinLogisticRegression as WassersteinLogisticRegression
from .estimators.classifier import radius_max as radius_max
from .estimators.column_checks import ColumnWarning as ColumnWarning
from .estimators.cross_validation import WassersteinLogisticRegressionCV as WassersteinLogisticRegressionCV
from .estimators.path import fit_path as fit_path
from .estimators.solving import SeparableDataWarning as SeparableDataWarning
from .model.worst_case import changed_mass as changed_mass

__version__: str
