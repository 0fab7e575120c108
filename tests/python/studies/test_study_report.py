from __future__ import annotations

import re
from dataclasses import replace

from ackclock.plot import Figure, interactive, new
from ackclock.report import ClaimRow, EvidenceRow, HalfRow, Page, Prose, Section, Table, TableCell, render, write
from ackclock.report.packed import unpack


def claim(verdict: str = "not comparable") -> ClaimRow:
    row = EvidenceRow(
        label="gain", value="1 %", interval="0 to 2", bound="> 0 %", seeds="9", verdict="holds", symbol="✓"
    )
    return ClaimRow(
        id="X1",
        place="§1",
        statement="a < b & c",
        reason="because",
        halves=(HalfRow(name="direction", verdict=verdict, symbol="–", recorded="holds", evidence=(row,), decisive=0),),
    )


def page(**more: object) -> Page:
    def draw():
        return new(2, 2)[0]

    figure = Figure(
        name="f",
        title="the point",
        caption="what <is> shown",
        draw=draw,
        data={},
        interactive=lambda: {"data": [{"name": "</script><b>"}], "layout": {}},
    )
    table = Table(caption="t", header=("a", "b"), rows=((TableCell(text="x", kind="differs", span=2), "1"), ("2",)))
    sections = (Section(title="One, two", blocks=(Prose(html="<p>hello</p>"), table, figure)),)
    return Page(title="T & U", summary="s", claims=(claim(),), sections=sections, scenarios={"s": 'name = "x"'}, **more)  # type: ignore[arg-type]


def test_text_is_escaped_and_figures_are_inside():
    html = render(page())
    assert "a &lt; b &amp; c" in html
    assert "T &amp; U" in html
    assert "<p>hello</p>" in html
    assert 'class="differs" rowspan="2"' in html
    assert "data:image/svg+xml;base64," in html


def test_data_cannot_end_their_script():
    data = re.search(r'<script type="text/plain" id="data-f">(.*?)</script>', render(page()), re.DOTALL)
    assert data is not None
    assert "<" not in data[1]
    assert unpack(data[1]).startswith('{"data":[{"name":"</script>')


def test_nothing_is_loaded_from_elsewhere():
    html = render(page())
    outside_of_scripts = re.sub(r"<script[^>]*>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"""(src|href)\s*=\s*["'](?!#|data:)""", outside_of_scripts)
    assert "@import" not in outside_of_scripts


def test_plotly_is_there_once_and_only_if_needed():
    assert render(page()).count("Plotly.newPlot(plot") == 1
    assert "Plotly" not in render(Page(title="t", summary="s"))


def test_tally_and_verdict_classes():
    assert page().tally == [("not comparable", "–", 1)]
    assert 'class="badge not-comparable"' in render(page())
    assert "recorded: holds" in render(page())


def test_numbers_carry_their_headings_to_narrow_screens():
    html = render(page())
    for head, value in (("95 % interval", "0 to 2"), ("asked", "&gt; 0 %"), ("samples", "9")):
        assert html.count(f'<td data-head="{head}">{value}</td>') == 2
    assert ">seeds<" not in html
    assert "@media screen and (max-width: 700px)" in html


def test_interactive_figures_follow_the_width_of_the_page():
    assert interactive.layout(x="t", y="y")["autosize"] is True
    assert "responsive: true" in render(page())


def test_drawn_figures_are_not_drawn_again(tmp_path):
    def never():
        raise AssertionError

    figure = Figure(name="f", title="t", caption="c", draw=never, data={})
    p = Page(title="t", summary="s", sections=(Section(title="x", blocks=(figure,)),))
    path = write(p, tmp_path / "deep" / "report.html", drawn={"f": b"<svg/>"})
    assert "PHN2Zy8+" in path.read_text(encoding="utf-8")


def _outside(html: str) -> str:
    """Return the visible text, outside every folded part."""
    html = re.sub(r"<(script|style|pre)[^>]*>.*?</\1>", "", html, flags=re.DOTALL)
    open_, depth = [], 0
    for piece in re.split(r"(</?details[^>]*>)", html):
        if piece.startswith("<details"):
            depth += " open" not in piece or depth > 0
        elif piece.startswith("</details"):
            depth = max(depth - 1, 0)
        elif depth == 0:
            open_.append(piece)
    return "".join(open_)


def test_a_page_with_many_claims_folds_to_one_picture_a_section():
    few, many = page(), replace(page(), claims=(claim(),) * 21)
    many = replace(many, sections=(replace(many.sections[0], claims=("X1",), blocks=(*many.sections[0].blocks, Prose(html="<p>last</p>"))),))  # fmt: skip
    assert (few.short, many.short) == (False, True)
    folded = render(many)
    assert "hello" in _outside(folded)
    assert "the point" in _outside(folded)
    assert "last" not in _outside(folded)
    assert "More of this chapter: 1 part" in folded
    assert "<b>1 %</b>" in _outside(render(few))
    assert "<b>1 %</b>" not in _outside(folded)
    assert '<a class="badge not-comparable" href="#claim-X1">– X1</a> a &lt; b &amp; c' in folded
