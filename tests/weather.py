"""A data set that is not the paper's, in a folder of its own."""

import hashlib
from pathlib import Path

import numpy as np

RECIPE = """
from wdrlr.data_prep.recipe import Recipe

RECIPE = Recipe(
    name="weather",
    files=("weather.csv",),
    columns=("temperature", "sky", "wind", "play"),
    label="play",
    numeric=("temperature",),
)
"""


def make_weather(folder: Path) -> Path:
    """A data set of 60 rows, a number and two categories, laid out as `WDRLR_RECIPES` wants it."""
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.uniform(10, 30):.1f},{rng.choice(['sun', 'clouds', 'rain'])},{rng.choice(['calm', 'storm'])}"
        for _ in range(60)
    ]
    text = "".join(f"{row},{'no' if 'rain' in row or 'storm' in row else 'yes'}\n" for row in rows)
    (folder / "recipes").mkdir(parents=True)
    (folder / "raw" / "weather").mkdir(parents=True)
    (folder / "recipes" / "weather.py").write_text(RECIPE)
    (folder / "raw" / "weather" / "weather.csv").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / "raw" / "SHA256SUMS").write_text(f"{digest}  weather/weather.csv\n")
    return folder
