"""Builds the site from the pages of the repository: python3 docs/site/build.py ZENSICAL

The site has the repository's layout, with README.md as index.md. It contains each page as HTML and as Markdown, and the
files that pages link to. Links to folders become plain text.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

HERE = pathlib.Path("docs/site")
SOURCES = pathlib.Path("target/site-sources")
SITE = pathlib.Path("target/site")

# a link, or code, in which links are ignored
LINK = re.compile(r"^```.*?^```|`[^`\n]+`|\[(?P<text>(?:[^\[\]]|!?\[[^\]]*\](?:\([^)]*\))?)*)\]\((?P<target>[^)\s]+)\)", re.M | re.S)


def sections():
    """Returns the pages of each section: path, title and description."""
    sections = tomllib.loads((HERE / "pages.toml").read_text())
    return {name: [(path, *about.split(": ", 1)) for path, about in pages.items()] for name, pages in sections.items()}


def on_site(path):
    return re.sub(r"\bREADME\.md$", "index.md", path)


class Pages:
    def __init__(self, paths):
        self.paths = paths
        self.files = set()

    def text(self, path):
        """Returns the Markdown of a page, with links rewritten for the site."""
        text = pathlib.Path(path).read_text()
        text = re.sub(r"^```(\w+),\S+$", r"```\1", text, flags=re.M)  # such as rust,no_run
        return self.links(text, path)

    def links(self, text, page):
        return LINK.sub(lambda found: self.link(found, page) if found["target"] else found[0], text)

    def link(self, found, page):
        text = self.links(found["text"], page)
        folder = os.path.dirname(page)
        path, anchor = re.match("([^#]*)(.*)", found["target"]).groups()
        if path and ":" not in path:
            path = os.path.normpath(os.path.join(folder, path))
            if os.path.isdir(path):
                return text
            if path not in self.paths:
                if not os.path.isfile(path):
                    sys.exit(f"{page} links to {path}, which does not exist")
                if path.endswith(".md"):
                    sys.exit(f"{page} links to {path}, which {HERE}/pages.toml lacks")
                self.files.add(path)
            path = on_site(os.path.relpath(path, folder or "."))
        return f"[{text}]({path}{anchor})"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def copy(path):
    (SOURCES / path).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, SOURCES / path)


def main():
    nav = sections()
    pages = Pages({path for section in nav.values() for path, _, _ in section})
    for path in pages.paths:
        if not os.path.isfile(path):
            sys.exit(f"{HERE}/pages.toml lists {path}, which does not exist")
    for folder in (SOURCES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    texts = {on_site(path): pages.text(path) for path in pages.paths}
    for path, text in texts.items():
        write(SOURCES / path, text)
    for path in {"console/public/icon.svg", f"{HERE}/site.css", *pages.files}:
        copy(path)

    entries = [
        f"{{ {json.dumps(name)} = [{', '.join(f'{{ {json.dumps(title)} = {json.dumps(on_site(path))} }}' for path, title, _ in section)}] }}"
        for name, section in nav.items()
    ]
    config = pathlib.Path("target/site.toml")
    directories = f'docs_dir = "{SOURCES.name}"\nsite_dir = "{SITE.name}"\n'
    write(config, f"{(HERE / 'zensical.toml').read_text()}{directories}nav = [{', '.join(entries)}]\n")
    # tests/site.py reports faults more briefly
    zensical = subprocess.run([sys.argv[1], "build", "--config-file", config, "--clean"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if zensical.returncode:
        sys.exit(zensical.stdout.decode())

    for path, text in texts.items():
        write(SITE / path, text)
    summary = re.search(r"^# [^\n]*\n\n(.*?)\n\n", texts["index.md"], re.S)[1].replace("\n", " ")
    lines = [f"# threadkeep\n\n> {summary}\n"]
    for name, section in nav.items():
        lines += [f"\n## {name}\n\n", *(f"- [{title}]({on_site(path)}): {about}\n" for path, title, about in section)]
    write(SITE / "llms.txt", "".join(lines))


if __name__ == "__main__":
    main()
