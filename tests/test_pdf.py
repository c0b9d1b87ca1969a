"""The book on paper: everything fits, everything can be drawn, every reference leads somewhere."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
pytest.importorskip("bs4", reason="needs the extra book")
sys.path.insert(0, str(ROOT / "book" / "_tools"))  # scripts, not a package: found from here on

import pdf  # noqa: E402

pytestmark = pytest.mark.interface


def test_every_chapter_is_printed():
    names = [name for _, pages in pdf.pages() for name in pages]
    assert names[0] == "book/index" and len(set(names)) == len(names)
    chapters = {f"book/{path.stem}" for path in (ROOT / "book").glob("*.ipynb")}
    assert chapters <= set(names)
    assert not any("api" in name for name in names)


def test_ids_and_links_of_a_page(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "one.html").write_text(
        '<article><h1 id="top">One</h1><a href="two.html#x">there</a> <a href="#top">up</a>'
        '<a href="api/svm.html">reference</a><a href="https://example.org/">out</a>'
        '<details><summary>code</summary></details><img src="../_images/a.png" alt="">'
        '<div class="animation"><img></div><mjx-math>seen</mjx-math>'
        "<mjx-assistive-mml><math>heard</math></mjx-assistive-mml>"
        '<script>frames[0] = "data:image/png;base64,AA\\\n'
        'BB"\n  frames[1] = "data:image/png;base64,CC"</script></article>'
    )
    monkeypatch.setattr(pdf, "SITE", tmp_path)
    text, heading = pdf.article("book/one", {"book/one", "book/two"})
    assert heading.get_text() == "One"
    assert 'id="book-one--top"' in text and 'href="#book-one--top"' in text
    assert 'href="#book-two--x"' in text and 'href="https://example.org/"' in text
    assert "reference" in text and "api/svm" not in text
    assert '<details open="">' in text and 'src="_images/a.png"' in text
    assert text.count("base64,AABB") == 1 and text.count("base64,CC") == 2
    assert "<script" not in text
    assert "heard" in text
    draft, _ = pdf.article("book/one", {"book/one"}, draft=True)
    assert "heard" not in draft and "seen" in draft


def test_a_character_that_no_font_has_is_found():
    assert pdf.missing_glyphs("plain text, α and ∑") == []
    assert pdf.missing_glyphs("\U0010fffd α") == ["\U0010fffd"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.skipif(not (pdf.SITE / "index.html").exists(), reason="there is no built book")
@pytest.mark.skipif(pdf.find_browser() is None, reason="there is no Chromium")
def test_the_book_prints(tmp_path):
    file = tmp_path / "book.pdf"
    assert pdf.write(file, draft=True) == []
    numbers = pdf.page_numbers(file)
    starts = [
        numbers[pdf.anchor(name)] for caption, pages in pdf.pages() if caption for name in pages
    ]
    assert starts == sorted(set(starts)) and starts[-1] > 300


def test_the_contents_have_titles_and_page_numbers(tmp_path, monkeypatch):
    (tmp_path / "book").mkdir()
    (tmp_path / "_static").mkdir()
    (tmp_path / "book" / "one.html").write_text("<article><h1>One & two</h1></article>")
    monkeypatch.setattr(pdf, "SITE", tmp_path)
    page = pdf.joined([("Part", ["book/one"])], {"book-one": 7})
    assert 'href="#book-one" data-title="One &amp; two" data-page="7"' in page
