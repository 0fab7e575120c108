"""Writes the library that draws the interactive figures of reports, packed as in pages, with its notices. Its source
is the npm package of the edition for lines, points and bars. Reports draw nothing else, and the full library, with
maps and surfaces, is four times as large.

    python tools/plotly_js.py TARBALL   # npm pack plotly.js-basic-dist-min@VERSION
    python tools/plotly_js.py --check   # check that the packed library has the hash below
"""

from __future__ import annotations

import hashlib
import re
import sys
import tarfile
from pathlib import Path

from ackclock.report import packed

FOLDER = Path(packed.__file__).parent
SHA256 = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
"""Hash of plotly-basic.min.js 4.1.1, as distributed by npm."""


def main() -> int:
    if sys.argv[1:] != ["--check"]:
        (tarball,) = sys.argv[1:]
        with tarfile.open(tarball) as archive:
            script, licence = (member(archive, name) for name in ("plotly-basic.min.js", "LICENSE"))
        written = notices(script, licence)
        (FOLDER / packed.LIBRARY).write_text(packed.pack(script), encoding="ascii")
        (FOLDER / packed.NOTICES).write_text(written, encoding="utf-8")
    script = packed.unpack(packed.plotly())
    wrong = []
    if (found := hashlib.sha256(script.encode()).hexdigest()) != SHA256:
        wrong.append(f"{packed.LIBRARY}: found the hash {found}; SHA256 in tools/plotly_js.py is {SHA256}")
    if f"plotly.js (basic - minified) v{packed.VERSION}\n" not in script[:200]:
        wrong.append(f"{packed.LIBRARY}: not version {packed.VERSION}, as ackclock.report.packed says")
    if any(part not in packed.notices() for part in parts(script)):
        wrong.append(f"{packed.NOTICES}: lacks a notice that the library holds")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def member(archive: tarfile.TarFile, name: str) -> str:
    file = archive.extractfile(f"package/{name}")
    assert file is not None
    return file.read().decode()


def notices(script: str, licence: str) -> str:
    """The library's header and licence, and those of bundled parts kept by its build."""
    head = script[: script.index("*/") + 2]
    return "\n\n".join(text.strip() for text in (head, licence, *parts(script))) + "\n"


def parts(script: str) -> list[str]:
    return list(
        dict.fromkeys(part.replace("\\n", "\n").strip() for part in re.findall(r"/\*!.*?\*/", script, re.DOTALL))
    )


if __name__ == "__main__":
    sys.exit(main())
