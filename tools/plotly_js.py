"""Writes the library that draws the interactive figures of reports, packed as in pages, with its notices. Its source is the wheel of the
Python package `plotly`: reports need this one file of 4.8 MB and none of the other 65 MB.

    python tools/plotly_js.py WHEEL     # pip download --no-deps plotly
    python tools/plotly_js.py --check   # check that the packed library has the hash below
"""

from __future__ import annotations

import hashlib
import re
import sys
import zipfile
from pathlib import Path

from ackclock.report import packed

FOLDER = Path(packed.__file__).parent
SHA256 = "3b6e15d45dbb7fca5bd2094291e961ddc5472cd887009e6009a56dab668d721f"
"""Hash of plotly.min.js 4.1.1, as the wheel of plotly 7.1.0 has it."""


def main() -> int:
    if sys.argv[1:] != ["--check"]:
        (wheel,) = sys.argv[1:]
        with zipfile.ZipFile(wheel) as archive:
            script = archive.read("plotly/package_data/plotly.min.js").decode()
            licence = next(n for n in archive.namelist() if n.rpartition("/")[2].upper().startswith("LICENSE"))
            written = notices(script, archive.read(licence).decode())
        (FOLDER / packed.LIBRARY).write_text(packed.pack(script), encoding="ascii")
        (FOLDER / packed.NOTICES).write_text(written, encoding="utf-8")
    script = packed.unpack(packed.plotly())
    wrong = []
    if (found := hashlib.sha256(script.encode()).hexdigest()) != SHA256:
        wrong.append(f"{packed.LIBRARY}: found the hash {found}; SHA256 in tools/plotly_js.py is {SHA256}")
    if f"plotly.js v{packed.VERSION}\n" not in script[:200]:
        wrong.append(f"{packed.LIBRARY}: not version {packed.VERSION}, as ackclock.report.packed says")
    if any(part not in packed.notices() for part in parts(script)):
        wrong.append(f"{packed.NOTICES}: lacks a notice that the library holds")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def notices(script: str, licence: str) -> str:
    """The library's header and licence, and those that its build keeps for bundled parts."""
    head = script[: script.index("*/") + 2]
    return "\n\n".join(text.strip() for text in (head, licence, *parts(script))) + "\n"


def parts(script: str) -> list[str]:
    return list(
        dict.fromkeys(part.replace("\\n", "\n").strip() for part in re.findall(r"/\*!.*?\*/", script, re.DOTALL))
    )


if __name__ == "__main__":
    sys.exit(main())
