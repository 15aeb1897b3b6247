"""The page of `orthant report` in a real browser: it shows its pictures, runs no script and asks for nothing."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import zlib

import numpy as np
import pytest

COMMAND = os.environ["ORTHANT"]
BROWSER = shutil.which("chromium-headless-shell") or shutil.which("chromium")
NAMES = ["x <b>&.npy", "y.npy"]


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
    html = page.read_text()
    assert not [word for word in ("src=", "@import", "url(http") if word in html]


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
