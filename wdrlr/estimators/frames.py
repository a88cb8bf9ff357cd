"""Where a warning points: at the line of the user, who knows neither this package's nor scikit-learn's."""

import sys


def depth_of_user() -> int:
    """How many frames up the first is that belongs neither to this package nor to scikit-learn."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in ("wdrlr", "sklearn"):
        frame, depth = frame.f_back, depth + 1
    return depth
