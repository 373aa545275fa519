"""Checks the pages, links, anchors and llms.txt of the site in target/site. tests/site.sh calls this script."""

import collections
import html.parser
import pathlib
import re
import sys
import urllib.parse

sys.path.insert(0, "docs/site")
import build

# Markdown that was not rendered: a fence, a table or a list.
UNRENDERED = re.compile(r"^```|^\|.*\|$|^[-*] ", re.M)


class Page(html.parser.HTMLParser):
    """Collects the anchors, the links and the loaded files of a page, and the text of its paragraphs without code."""

    def __init__(self, path):
        super().__init__()
        self.anchors = set()
        self.links = set()
        self.loaded = set()
        self.paragraphs = []
        self.within = collections.Counter()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.update(value for name in ("id", "name") if (value := attributes.get(name)))
        if tag == "a" and attributes.get("href"):
            self.links.add(attributes["href"])
        elif tag in ("link", "script", "img", "iframe", "source"):
            self.loaded.update(value for name in ("href", "src") if (value := attributes.get(name)))
        if tag == "p":
            self.paragraphs.append("")
        self.within[tag] += 1

    def handle_endtag(self, tag):
        self.within[tag] = 0

    def handle_data(self, data):
        if self.within["p"]:
            self.paragraphs[-1] += "`" if self.within["code"] else data


def is_external(target):
    return bool(urllib.parse.urlsplit(target).scheme) or target.startswith("//")


def faults():
    sections = build.sections()
    paths = [path for section in sections.values() for path, _, _ in section]
    listed = set(paths)
    for path, count in collections.Counter(paths).items():
        if count > 1:
            yield f"docs/site/pages.toml lists {path} {count} times"
    for path in sorted(map(str, pathlib.Path("docs").rglob("*.md"))):
        if path not in listed:
            yield f"docs/site/pages.toml lacks {path}"

    index = (build.SITE / "llms.txt").read_text()
    if not re.match(r"# .+\n\n> .+\n\n## ", index):
        yield "llms.txt does not begin with a title, a summary and a section"
    for path in map(build.on_site, paths):
        page = build.SITE / path
        if not page.is_file() or not page.with_suffix(".html").is_file():
            yield f"{page} or its HTML is missing"
        if not re.search(rf"^- \[.+\]\({re.escape(path)}\): .+$", index, re.M):
            yield f"llms.txt lacks {path}"
    if not list(build.SITE.glob("search*.json")):
        yield "there is no index for the search"

    pages = {path.resolve(): Page(path) for path in build.SITE.rglob("*.html")}
    for path, page in pages.items():
        name = path.relative_to(build.SITE.resolve())
        yield from (f"{name} loads {target}" for target in page.loaded if is_external(target) and not target.startswith("data:"))
        yield from (f"{name} shows Markdown: {text}" for text in page.paragraphs if UNRENDERED.search(text))
        for target in sorted({*page.links, *page.loaded}):
            if not is_external(target) and not target_exists(path, target, pages):
                yield f"{name} links to {target}"
    for path in map(build.on_site, paths):
        text = re.sub(r"^```.*?^```|`[^`\n]+`", "`", (build.SITE / path).read_text(), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            if not is_external(target) and not (build.SITE / path).parent.joinpath(target).is_file():
                yield f"{path} links to {target}"


def target_exists(path, target, pages):
    link = urllib.parse.urlsplit(target)
    file = path
    if link.path:
        folder = build.SITE.resolve() if link.path.startswith("/") else path.parent
        file = (folder / urllib.parse.unquote(link.path).lstrip("/")).resolve()
        file = file / "index.html" if file.is_dir() else file
    anchor = urllib.parse.unquote(link.fragment)
    return file.is_file() and (not anchor or file not in pages or anchor in pages[file].anchors)


messages = list(faults())
print("\n".join(messages) or f"site: {len(list(build.SITE.rglob('*.html')))} pages, no broken links")
sys.exit(1 if messages else 0)
