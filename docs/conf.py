"""The documentation as a site: `make site` builds it with Sphinx into `site/`.

The root of the repository is the source folder, so that a link between files means the same here as in the files themselves, and a
link to a source file becomes a copy of it. The front page is README.md. Nothing is loaded from the network, neither by the build nor
by the pages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

project = "ackclock"
author = "The ackclock developers"
project_copyright = author
release = version = __import__("ackclock").__version__

root_doc = "README"
include_patterns = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/**.md",
    "docs/gallery/**.rst",
    "python/ackclock/fidelity/data/README.md",
]
exclude_patterns = ["docs/gallery/sg_execution_times.rst", "sg_execution_times.rst"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = [
    "ref.python",  # a short name in a signature that two modules have
    "misc.highlighting_failure",  # what a command prints is no shell
]

default_role = "literal"  # of docstrings: a single backtick is code
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
napoleon_google_docstring = False
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True

html_theme = "furo"
html_title = f"ackclock {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": r"/\d\d_",
    "ignore_pattern": r"__",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "min_reported_time": 3600,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "download_all_examples": False,
    "plot_gallery": True,
}

CONTENTS = """
```{toctree}
:hidden:
:caption: Start
docs/README
Tutorial <docs/tutorial>
Gallery <docs/gallery/index>
docs/how-to/README
docs/glossary
```

```{toctree}
:hidden:
:caption: Reference
:glob:
docs/reference/scenario
docs/reference/tables
docs/reference/controller-contract
docs/controllers
docs/reference/python
docs/reference/python-results
docs/reference/python-sweeps
docs/reference/python-tools
docs/reference/*
```

```{toctree}
:hidden:
:caption: Results
docs/fidelity
docs/evaluation
docs/worst-cases
docs/proofs
docs/arena
docs/frcc
docs/numbers
docs/kernels
docs/studies/README
```

```{toctree}
:hidden:
:caption: Inside
ARCHITECTURE
docs/decisions/README
CONTRIBUTING
docs/safety
docs/stability
CHANGELOG
```
"""
"""What the menu shows: on the site alone, for a README is read elsewhere too."""


def how_tos() -> list[str]:
    """How-tos in the order of their list; one that the list lacks stops the build, as a page without a place in the menu."""
    text = (Path(__file__).parent / "how-to" / "README.md").read_text(encoding="utf-8")
    return list(dict.fromkeys(re.findall(r"\]\(([\w-]+)\.md[)#]", text)))


BELOW = {
    "README": CONTENTS,
    "docs/fidelity": "\n```{toctree}\n:hidden:\n/python/ackclock/fidelity/data/README\n```\n",
    "docs/how-to/README": "\n```{toctree}\n:hidden:\n" + "\n".join(how_tos()) + "\n```\n",
    "docs/evaluation": "\n```{toctree}\n:hidden:\n:glob:\nknown/*\n```\n",
    "docs/studies/README": "\n```{toctree}\n:hidden:\n:glob:\n[a-z]*\n```\n",
    "docs/decisions/README": "\n```{toctree}\n:hidden:\n:glob:\n0*\n```\n",
}


def add_contents(_app: Any, name: str, source: list[str]) -> None:
    """Put the menu below the pages that lead to others."""
    source[0] += BELOW.get(name, "")


def draw_tables(_app: Any, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Tables of Markdown in a docstring, as reStructuredText has them."""
    drawn: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            drawn.append(line)
        elif not set("".join(cells)) <= set("-: "):
            begun = bool(drawn) and drawn[-1].startswith("     - ")
            drawn += [] if begun else ["", ".. list-table::", "   :header-rows: 1", ""]
            drawn += [f"   {'*' if i == 0 else ' '} - {cell}" for i, cell in enumerate(cells)]
    lines[:] = drawn


PACKAGE = Path(__file__).resolve().parent.parent / "python" / "ackclock"
SCENARIOS = PACKAGE / "_scenarios"
LAB = PACKAGE / "_lab" / "lab.html"
"""The simulator in a page, which `make site` copies to lab/ where it could be built."""


LESSON_OF = {"recovery.png": "recovery", "slow-start-e": "slow-start", "slow-start-noise.png": "slow-start"}
"""Pictures, by the beginning of their names, and the lesson in which a reader makes one of that kind."""


def open_in_lab(app: Any, doctree: Any, name: str) -> None:
    """Put a link below each scenario that stands on a page whole, which carries its text; below a command that runs a scenario of the package;
    and below a picture that a lesson is about.
    """
    from docutils import nodes

    if not LAB.exists():
        return
    lab = app.builder.get_relative_uri(name, "lab/index")
    seen = set()
    for block in list(doctree.findall(lambda node: isinstance(node, nodes.literal_block | nodes.image))):
        behind = behind_picture(block["uri"]) if isinstance(block, nodes.image) else behind_block(block)
        if not behind or behind in seen:
            continue
        seen.add(behind)
        said = "Open the lesson in the lab" if behind.startswith("#lesson=") else "Open in the lab"
        link = nodes.reference("", said, refuri=lab + behind, internal=True)
        place = block.parent if isinstance(block.parent, nodes.container | nodes.paragraph) else block
        place.parent.insert(place.parent.index(place) + 1, nodes.paragraph("", "", link, classes=["lab"]))


def behind_block(block: Any) -> str:
    """What stands behind the lab's address for a block of text; "" if it has no scenario."""
    import tomllib

    from ackclock import _link

    text = block.astext()
    if block.get("language") != "toml":
        found = re.search(r"ackclock run (?:scenarios/)?([\w-]+)(?:\.toml)?(?=\s|$)", text)
        file = SCENARIOS / f"{found[1]}.toml" if found else None
        known = file is not None and file.exists() and _link.runs_in_page(file.read_text(encoding="utf-8"))
        return f"#name={found[1]}" if found and known else ""
    try:
        read = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return ""
    whole = {"duration", "network", "flows"} <= set(read) and _link.runs_in_page(text)
    return _link.made(text) if whole else ""


def behind_picture(uri: str) -> str:
    """The same for a picture."""
    lessons = [lesson for start, lesson in LESSON_OF.items() if Path(uri).name.startswith(start)]
    return f"#lesson={lessons[0]}" if lessons else ""


REACHED = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer">': '<aside class="toc-drawer" aria-label="On this page">',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<div class="table-wrapper ': '<div tabindex="0" role="group" aria-label="table" class="table-wrapper ',
}
"""What theme and builder write, and the same for keyboards and screen readers: what scrolls is reached by the keyboard, headings have a level."""


def reached(text: str) -> str:
    """A page for whoever reads it with a keyboard or by ear."""
    for written, wanted in REACHED.items():
        text = text.replace(written, wanted)
    return text


def mend_pages(app: Any, failed: Exception | None) -> None:
    """Rewrite the pages that were built."""
    for page in Path(app.outdir).rglob("*.html") if failed is None else ():
        page.write_text(reached(page.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Any) -> None:
    """What Sphinx calls first."""
    app.connect("build-finished", mend_pages)
    app.connect("source-read", add_contents)
    app.connect("doctree-resolved", open_in_lab)
    app.connect("autodoc-process-docstring", draw_tables)
