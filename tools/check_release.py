"""Lists the placeholders to be filled in before a release can be published; exit code 1 if there are any.

Only the publisher knows the project's addresses, so none are made up in these files. The workflow `release` runs this
before it publishes, and CONTRIBUTING.md, "Publish a release", lists the steps that only a person can do.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path

URLS = ("Homepage", "Documentation", "Source", "Issues", "Changelog")
FILES = (
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "THIRD-PARTY.txt",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "python/ackclock/py.typed",
)
PLACEHOLDER = re.compile(r"example\.(?:org|com|net)", re.IGNORECASE)


def field(text: str, key: str) -> str:
    """Value of a top-level key in a YAML file; empty if there is none."""
    found = re.search(rf"^{key}: *(\S.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def missing(root: Path) -> list[str]:
    """One line per placeholder to be filled in."""
    said = [f"{name}: found no such file; needed in a release" for name in FILES if not (root / name).is_file()]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    urls = project.get("urls", {})
    said += [
        f"pyproject.toml: project.urls.{name}: found none; needed: the address" for name in URLS if name not in urls
    ]
    said += [
        f"pyproject.toml: project.urls.{name}: found {url}; needed: the real address"
        for name, url in urls.items()
        if PLACEHOLDER.search(url)
    ]
    about = (root / "CITATION.cff").read_text(encoding="utf-8")
    source = field(about, "repository-code")
    if not source or PLACEHOLDER.search(source):
        said.append(f"CITATION.cff: repository-code: found {source or 'none'}; needed: the address of the sources")
    elif source != urls.get("Source"):
        said.append(
            f"CITATION.cff: repository-code: found {source}; needed: {urls.get('Source')}, as in pyproject.toml"
        )
    if not field(about, "date-released"):
        said.append("CITATION.cff: date-released: found none; needed: the day of the release")
    archive = json.loads((root / ".zenodo.json").read_text(encoding="utf-8"))
    named = [author["name"] for author in project["authors"]]
    if [creator["name"] for creator in archive["creators"]] != named:
        said.append(
            f".zenodo.json: creators: found {archive['creators']}; needed: {', '.join(named)}, as in pyproject.toml"
        )
    return said


def main() -> int:
    said = missing(Path(__file__).resolve().parent.parent)
    for line in said:
        print(line, file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
