#!/bin/sh
# Builds the documentation site in target/site. Checks its links, llms.txt and Markdown.
#
# To read the site: python3 -m http.server --directory target/site
set -eu

cd "$(dirname "$0")/.."
# shellcheck source=tests/packages.sh
. tests/packages.sh

install_python zensical==0.0.73 click==8.5.1 jinja2==3.1.6 markdown==3.11.3 pygments==2.21.0 pymdown-extensions==13.1.2 pyyaml==6.0.4 deepmerge==4.0.0 markupsafe==3.0.4 pathspec==1.1.1 tomli==2.5.0
"$venv/bin/python" docs/site/build.py "$venv/bin/zensical"
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" tests/site.py
