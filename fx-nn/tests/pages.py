"""Opens the pages of `--example draw` in headless Chromium and prints a line per page.

    pip install playwright html5lib        # and Chromium: `apt-get install chromium`
    cargo run --release -p fx-nn --example draw -- DIR
    python fx-nn/tests/pages.py DIR

A page is opened, every check is made of what it shows then and after some modules are opened, and screenshots of the
light and the dark colours are written into DIR/screenshots. The exit code is 1 if a page has an error, a text outside
its box, a line under a box, or boxes that overlap.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

CHECKS = """() => {
  const inside = (r, x, y, by) => x > r.left + by && x < r.right - by && y > r.top + by && y < r.bottom - by;
  const rects = [...document.querySelectorAll('#view rect.b')].map((e) => [e, e.getBoundingClientRect()]);
  const groups = [...document.querySelectorAll('#view rect.g')].map((e) => e.getBoundingClientRect());
  let labels = 0, under = 0, overlaps = 0;
  for (const g of document.querySelectorAll('#view g.u, #view g.h')) {
    const r = g.querySelector('rect')?.getBoundingClientRect();
    for (const t of g.querySelectorAll('text')) {
      const b = t.getBoundingClientRect();
      if (r && (b.left < r.left - .5 || b.right > r.right + .5)) labels++;
    }
  }
  for (const p of document.querySelectorAll('#view path[marker-end]')) {
    const m = p.getScreenCTM(), n = p.getTotalLength();
    const at = (s) => p.getPointAtLength(s).matrixTransform(m);
    const [a, z] = [at(0), at(n)];
    const around = groups.filter((g) => !inside(g, a.x, a.y, 1) || !inside(g, z.x, z.y, 1));
    let hit = false;
    for (let s = 2; s < n - 2 && !hit; s += 6) {
      const q = at(s);
      hit = rects.some(([, r]) => inside(r, q.x, q.y, 1.5)) || around.some((g) => inside(g, q.x, q.y, 1.5));
    }
    if (hit) under++;
  }
  const boxes = rects.map(([, r]) => r).concat(
    [...document.querySelectorAll('#view svg > g > text.s')].map((e) => e.getBoundingClientRect()));
  boxes.sort((a, b) => a.top - b.top);
  for (let i = 0; i < boxes.length; i++)
    for (let j = i + 1; j < boxes.length && boxes[j].top < boxes[i].bottom - 1; j++)
      if (boxes[i].left < boxes[j].right - 1 && boxes[j].left < boxes[i].right - 1) overlaps++;
  return [labels, under, overlaps];
}"""

# The closed group with the most children, opened as a click does it.
OPEN = """() => {
  const closed = [...document.querySelectorAll('#view g.u[data-k="1"]')].map((e) => +e.dataset.r);
  if (!closed.length) return 0;
  const g = closed.reduce((a, b) => (G[b].slots.length > G[a].slots.length ? b : a));
  const start = performance.now();
  choose(1, g);
  document.body.getBoundingClientRect();
  return performance.now() - start;
}"""

SEARCH = """() => {
  let most = 0;
  for (const text of ['a', 'ad', 'add', 'add 1', 'h.1', 'zzz']) {
    const start = performance.now();
    document.querySelector('input').value = text;
    search(text);
    document.body.getBoundingClientRect();
    most = Math.max(most, performance.now() - start);
  }
  document.querySelector('input').value = '';
  hits();
  return most;
}"""


def scripts(path):
    """The number of scripts that an HTML parser finds, and of elements that load something."""
    import html5lib

    tree = html5lib.parse(path.read_text(), namespaceHTMLElements=False)
    loads = [e for e in tree.iter() if isinstance(e.tag, str) and {"src", "srcset", "data"} & set(e.attrib)]
    return len(list(tree.iter("script"))), len(loads) + len(list(tree.iter("link")))


def main():
    folder = Path(sys.argv[1])
    shots = folder / "screenshots"
    shots.mkdir(exist_ok=True)
    bad = False
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for path in sorted(folder.rglob("*.html")):
            if path.name == "index.html":
                continue
            name = "-".join(path.relative_to(folder).with_suffix("").parts)
            context = browser.new_context(viewport={"width": 1400, "height": 900}, color_scheme="light")
            page = context.new_page()
            errors = []
            page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
            page.on("pageerror", lambda e: errors.append(str(e)))
            page.on("request", lambda r: errors.append(r.url) if not r.url.startswith("file:") else None)
            page.goto(path.resolve().as_uri())
            first = float(page.evaluate("document.body.dataset.ready"))
            checks = page.evaluate(CHECKS)
            page.screenshot(path=shots / f"{name}-light.png")
            # The first time also compiles the script.
            opened = [page.evaluate(OPEN) for _ in range(3)]
            page.evaluate("fit()")
            checks = [a + b for a, b in zip(checks, page.evaluate(CHECKS))]
            search = page.evaluate(SEARCH)
            page.evaluate("theme(true)")
            page.screenshot(path=shots / f"{name}-dark.png")
            nodes = page.evaluate("N")
            labels, under, overlaps = checks
            print(f"page {name} nodes {nodes} file_kb {path.stat().st_size // 1024} first_view_ms {first:.0f} "
                  f"open_ms {max(opened):.0f} search_ms {search:.0f} console_errors {len(errors)} "
                  f"labels_outside {labels} edges_under {under} overlaps {overlaps}", flush=True)
            for error in errors:
                print("  ", error)
            found, loads = scripts(path) if nodes < 50_000 else (1, 0)
            if found != 1 or loads:
                print(f"   {found} scripts, {loads} elements that load something")
            bad |= bool(errors or labels or under or overlaps or found != 1 or loads)
            context.close()
        browser.close()
    sys.exit(bad)


if __name__ == "__main__":
    main()
