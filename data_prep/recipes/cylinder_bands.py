"""cylinder-bands: does a print run suffer from bands? 19 numbers, 16 categories, label `band type`.

One record of the file is broken into two lines (522 and 523); both halves, which have no label, are dropped: N
is then the paper's 539. The date and three names of the job are dropped. Text is lower-cased, since the same
value is written in several ways (KEY, KeY, key): only then is k the paper's 43 (58 otherwise). Two columns then
have a single value and are dropped. "?" is a level in a categorical column; in the numeric ones it is left
missing. The paper does not say how it filled them.
"""

import pandas as pd

from wdrlr.data_prep.recipe import Recipe

LABEL = "band type"


def mend(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    whole = table[LABEL].isin(["band", "noband"])
    table = table[whole]
    return table.apply(lambda column: column.str.lower()), [
        f"Dropped {(~whole).sum()} rows without a label: the halves of one broken record.",
        "Lower-cased the text, since the same value is written in several ways.",
    ]


RECIPE = Recipe(
    name="cylinder-bands",
    uci_id=32,
    zip_name="cylinder+bands.zip",
    files=("bands.data",),
    columns=(
        "timestamp", "cylinder number", "customer", "job number", "grain screened", "ink color",
        "proof on ctd ink", "blade mfg", "cylinder division", "paper type", "ink type", "direct steam",
        "solvent type", "type on cylinder", "press type", "press", "unit number", "cylinder size",
        "paper mill location", "plating tank", "proof cut", "viscosity", "caliper", "ink temperature",
        "humidity", "roughness", "blade pressure", "varnish pct", "press speed", "ink pct", "solvent pct",
        "ESA Voltage", "ESA Amperage", "wax", "hardener", "roller durometer", "current density",
        "anode space ratio", "chrome content", LABEL,
    ),
    label=LABEL,
    dropped={
        "timestamp": "a date",
        "cylinder number": "a name of the job",
        "customer": "a name of the job",
        "job number": "a name of the job",
    },
    numeric=(
        "proof cut", "viscosity", "caliper", "ink temperature", "humidity", "roughness", "blade pressure",
        "varnish pct", "press speed", "ink pct", "solvent pct", "ESA Voltage", "ESA Amperage", "wax",
        "hardener", "roller durometer", "current density", "anode space ratio", "chrome content",
    ),
    edit=mend,
)  # fmt: skip
