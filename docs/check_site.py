"""Look at the built site in a browser: nothing may stick out, no link may be broken, no picture missing.

    sphinx-build -W -b html docs docs/_build && python docs/check_site.py
    python docs/check_site.py --screenshots /tmp/pictures index tutorials/quickstart    # and look for yourself

Links are checked in the files, to their anchors; those to other sites are not. The rest needs Chromium: every page is
loaded, once wide and once narrow, into a frame that is measured. Without Chromium that is skipped, with a note.
"""
import argparse
import contextlib
import functools
import http.server
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

WIDTHS = (1400, 400)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")

# ---- Links ----------------------------------------------------------------------------------------


class Page(HTMLParser):
    """The addresses that a page names, and the anchors that it has."""

    def __init__(self, path):
        super().__init__()
        self.addresses, self.anchors = set(), {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        self.addresses.update(attributes[name] for name in ("href", "src") if attributes.get(name))


def broken_links(site):
    """(page, address) for each address within the site that leads nowhere."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        for address in sorted(page.addresses):
            if urlsplit(address).scheme or address.startswith("//"):
                continue
            place, anchor = urldefrag(address)
            place = unquote(urlsplit(place).path)
            target = (path.parent / place).resolve() if place else path
            if not target.exists() or (target in pages and unquote(anchor) not in pages[target].anchors):
                yield path.relative_to(site.resolve()).as_posix(), address


# ---- In the browser -------------------------------------------------------------------------------

HARNESS = """<!doctype html><meta charset="utf-8"><body style="margin:0"><script>
const {pages, widths} = JOB;
const wait = (milliseconds) => new Promise(done => setTimeout(done, milliseconds));
function look(page, width, frame) {
  const found = [], view = frame.contentDocument, root = view.documentElement;
  const say = (what) => found.push({page, width, what});
  if (root.scrollWidth > width + 1) {
    const wide = [...view.body.querySelectorAll("article *")].filter(e => e.getBoundingClientRect().right > width + 1);
    say(`the page is ${root.scrollWidth} pixels wide: ${wide.length ? wide[0].outerHTML.slice(0, 120) : "?"}`);
  }
  for (const image of view.images)
    if (image.complete && !image.naturalWidth) say(`no picture: ${image.getAttribute("src")}`);
  if (width > 1000) for (const block of view.querySelectorAll("article pre, article .table-wrapper, article .formula"))
    if (block.scrollWidth > block.clientWidth + 1)
      say(`${block.scrollWidth - block.clientWidth} pixels do not fit: ${block.textContent.trim().slice(0, 80)}`);
  return found;
}
(async () => {
  let found = [];
  for (const width of widths) {
    const frame = document.createElement("iframe");
    frame.style = `border:0; width:${width}px; height:900px`;
    document.body.append(frame);
    for (const page of pages) {
      await new Promise(done => { frame.onload = done; frame.src = "/" + page; });
      for (const image of frame.contentDocument.images) {
        image.loading = "eager";
        try { await image.decode(); } catch {}
      }
      await frame.contentDocument.fonts.ready;
      await wait(20);
      found = found.concat(look(page, width, frame));
    }
    frame.remove();
  }
  await fetch("/found", {method: "POST", body: JSON.stringify(found)});
})();
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
    """The site, the page that looks at it, and where that says what it found."""

    def do_GET(self):
        if self.path != "/look":
            return super().do_GET()
        body = self.server.harness.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.server.found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def serving(site, harness):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    server.harness, server.found, server.done = harness, None, threading.Event()
    server.address = f"http://127.0.0.1:{server.server_port}/look"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def find_browser():
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def command(browser, profile):
    flags = ["--headless=new", "--disable-gpu", "--hide-scrollbars", "--no-first-run", f"--user-data-dir={profile}"]
    return [browser, *flags, *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else [])]


def look(site, browser, pages, widths=WIDTHS, seconds=300):
    """What sticks out or is missing: dicts of page, width and what."""
    harness = HARNESS.replace("JOB", json.dumps({"pages": pages, "widths": widths}))
    with serving(site, harness) as server, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = [
            f"--window-size={max(widths)},1000",
            "--remote-debugging-port=0",
        ]  # the port keeps it from ending at once
        with subprocess.Popen([*command(browser, profile), *flags, server.address],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            finished = server.done.wait(seconds)
            process.terminate()
    if not finished:
        raise TimeoutError(f"The browser did not come to an end within {seconds} seconds.")
    return server.found


def take_screenshots(site, browser, pages, folder, height=2400):
    """A picture of each page, wide and narrow, light and dark (a window cannot be narrow, so a frame is)."""
    folder.mkdir(parents=True, exist_ok=True)
    for page, width, scheme in itertools.product(pages, WIDTHS, ("light", "dark")):
        style = f"border:0; width:{width}px; height:{height}px"
        name = f"{page.removesuffix('.html').replace('/', '-')}-{width}-{scheme}.png"
        flags = [
            f"--window-size={max(width, 500)},{height}",
            "--virtual-time-budget=5000",
            f"--screenshot={folder / name}",
            f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}",
        ]
        with (serving(site, f'<body style="margin:0"><iframe style="{style}" src="/{page}"></iframe>') as server,
              tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile):
            subprocess.run([*command(browser, profile), *flags, server.address], check=True, timeout=120,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", help="names such as howto/data; all of them if none is named")
    parser.add_argument("--site", type=Path, default=Path(__file__).parent / "_build")
    parser.add_argument("--screenshots", type=Path, help="a folder for pictures of the pages")
    arguments = parser.parse_args()
    pages = [f"{page}.html" for page in arguments.pages]
    pages = pages or sorted(path.relative_to(arguments.site).as_posix() for path in arguments.site.rglob("*.html"))
    if not pages:
        sys.exit(f"{arguments.site} has no pages: build the site first.")
    faults = [f"{page}: a link that leads nowhere: {address}" for page, address in broken_links(arguments.site)]
    browser = find_browser()
    if browser is None:
        print("Skipped: there is no Chromium to look at the pages with. Links were checked.")
    else:
        found = look(arguments.site, browser, pages)
        faults += [f"{fault['page']} at {fault['width']} pixels: {fault['what']}" for fault in found]
        if arguments.screenshots:
            take_screenshots(arguments.site, browser, pages, arguments.screenshots)
    print("\n".join([*faults, f"{len(pages)} pages, {len(faults)} faults"]))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
