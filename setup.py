"""What follows from the address in pyproject.toml: the URLs, which docs/conf.py reads too, and the README's links."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent
readme = (ROOT / "README.md").read_text(encoding="utf-8")
repository = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["wdrlr"]["repository"]
urls = {}
if repository:
    address = re.fullmatch(r"https://github\.com/([\w.-]+)/([\w.-]+)", repository)
    if address is None:
        raise ValueError(f"[tool.wdrlr] repository must be https://github.com/OWNER/NAME or empty, not {repository!r}")
    owner, name = address.groups()
    urls = {
        "Repository": repository,
        "Issues": f"{repository}/issues",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Documentation": f"https://{owner.lower()}.github.io/{name}/",
        "Binder": f"https://mybinder.org/v2/gh/{owner}/{name}/HEAD?labpath=notebooks%2Ftutorial.ipynb",
    }
    readme = re.sub(r"(!\[[^]]*\]\()(?!https:|#)", rf"\g<1>{repository}/raw/HEAD/", readme)
    readme = re.sub(r"((?<!!)\[[^]]*\]\()(?!https:|#)", rf"\g<1>{repository}/blob/HEAD/", readme)

if __name__ == "__main__":
    from setuptools import setup

    setup(long_description=readme, long_description_content_type="text/markdown", project_urls=urls)
