"""Pages and pictures in a real browser: the page of `orthant report` shows its pictures, runs no script and asks for
nothing; words in pictures can be read."""

import html
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest

COMMAND = os.environ["ORTHANT"]
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
NAMES = ["x <b>&.npy", "y.npy"]

# Nothing may hang: neither the command nor the browser.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=[1, 2, 5])
def page(request, tmp_path_factory):
    """Clouds of one, two and five dimensions, in files whose names are no HTML."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(request.param)
    np.save(folder / NAMES[0], rng.normal(size=(300, request.param)))
    np.save(folder / NAMES[1], 0.5 * rng.normal(size=(200, request.param)) + 2.0)
    command = [COMMAND, "report", *(folder / name for name in NAMES), "--output", folder / "r.html"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "r.html"


def browse(page, *arguments):
    common = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
              f"--user-data-dir={page.parent / 'profile'}", "--enable-logging=stderr"]
    result = subprocess.run([BROWSER, *common, *arguments, page.as_uri()],
                            check=True, capture_output=True, text=True, timeout=120)
    return result


def test_the_page_has_its_pictures_and_numbers(page):
    result = browse(page, "--dump-dom")
    dom = result.stdout
    assert dom.count("<svg") == 3 and dom.count("</figure>") == 3
    assert "x &lt;b&gt;&amp;.npy" in dom and "<b>" not in dom
    assert "Sinkhorn divergence" in dom and "orthant report" in dom and "NaN" not in dom
    assert "<script" not in dom
    assert "CONSOLE" not in result.stderr, result.stderr


def test_nothing_is_asked_for(page):
    log = page.parent / "net.json"
    browse(page, f"--log-net-log={log}", "--dump-dom")
    text = log.read_text()
    # A browser that is killed does not close its list.
    events = json.loads(text if text.rstrip().endswith("}") else text.rstrip().rstrip(",") + "]}")
    urls = {e["params"]["url"] for e in events["events"] if "url" in e.get("params", {})}
    assert not [url for url in urls if not url.startswith(("file:", "data:"))], urls
    source = page.read_text()
    assert not [word for word in ("src=", "@import", "url(http") if word in source]


def test_it_renders(page):
    picture = pathlib.Path(page.parent / "shot.png")
    browse(page, f"--screenshot={picture}", "--window-size=900,2400")
    data, chunks, at = picture.read_bytes(), [], 8
    width, height = struct.unpack(">II", data[16:24])
    while at < len(data):
        (length,) = struct.unpack(">I", data[at:at + 4])
        if data[at + 4:at + 8] == b"IDAT":
            chunks.append(data[at + 8:at + 8 + length])
        at += 12 + length
    rows = zlib.decompress(b"".join(chunks))
    assert (width, height) == (900, 2400)
    # Something is drawn in the first picture and in the last: rows that are not all of one colour.
    stride = len(rows) // height
    busy = [len(set(rows[k * stride + 1:(k + 1) * stride])) > 2 for k in range(height)]
    assert sum(busy[:1200]) > 300 and sum(busy[1200:]) > 200


# Leaves the boxes of all lines of text in the page, in pixels.
MEASURE = """<script>
const lines = [...document.querySelectorAll("text")].map(line => {
  const {left, top, right, bottom} = line.getBoundingClientRect();
  return {text: line.textContent, box: [left, top, right, bottom]};
});
document.body.dataset.lines = JSON.stringify(lines);
</script>"""


def lines_of(picture):
    """All lines of text of an SVG file, with the boxes that they fill."""
    page = picture.with_suffix(".html")
    # Without a declared encoding the browser guesses one, and not always the same.
    svg = picture.read_text(encoding="utf-8")
    page.write_text(f"<!doctype html><meta charset='utf-8'><body style='margin:0'>{svg}{MEASURE}</body>",
                    encoding="utf-8")
    dom = browse(page, "--dump-dom", "--window-size=4000,3000").stdout
    [found] = re.findall(r'data-lines="([^"]*)"', dom)
    return json.loads(html.unescape(found))


def test_long_names_in_a_picture_can_be_read(tmp_path):
    """24 names of 40 letters that differ at the beginning, in the middle or at the end."""
    rng = np.random.default_rng(0)
    names = [
        [f"{k:02}_measured_on_some_day_in_november_2026",
         f"measured_on_some_day_{k:02}_in_november_2026",
         f"measured_on_some_day_in_november_2026_{k:02}"][k % 3]
        for k in range(24)
    ]
    for k, name in enumerate(names):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(30, 2)) + 0.2 * (k % 7))
    picture = tmp_path / "compare.svg"
    files = [str(tmp_path / f"{name}.npy") for name in names]
    subprocess.run([COMMAND, "compare", *files, "--picture", picture], check=True, capture_output=True)
    lines = lines_of(picture)
    width, height = (float(x) for x in
                     re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture.read_text()).groups())
    # In the matrix as a row and as a column, in the tree and in the plane.
    assert sum("november_2026" in line["text"] or "…" in line["text"] for line in lines) == 4 * 24
    for k, line in enumerate(lines):
        left, top, right, bottom = line["box"]
        assert left >= 0 and top >= 0 and right <= width and bottom <= height, line
        # Boxes reach from the highest to the lowest letter of the font, which touches the next line.
        for other in lines[:k]:
            a, b = line["box"], other["box"]
            across = min(a[2], b[2]) - max(a[0], b[0])
            along = min(a[3], b[3]) - max(a[1], b[1])
            assert across <= 2 or along <= 2, (line, other)
