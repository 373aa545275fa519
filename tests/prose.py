"""Holds pages, comments and texts to the project's rules of style: python3 tests/prose.py"""

import pathlib
import re
import sys

# a rule, and what to write instead
RULES = [
    (r"(?:^|[.!:;|] |\*\* )(?:What|Who|Whom|Whose|Whoever|Whatever)\b(?![^.|]*\?)", "a noun as the subject"),
    (r"\bwhat is left of\b", "the noun"),
    (r"\bwhat (?:does not fit|is too much|is over|was sent|is sent)\b", "the noun: a write that does not fit"),
    (r"\b(?:is|are|was|were|be) told\b", "the active voice: the server tells ..."),
    (r"\bcan be got\b", "you can read ..."),
    (r"\bbut for\b", "except"),
    (r"\banew\b", "again"),
    (r"\b(?:is|are) none\b(?! (?:left|until))", "is not a .."),
    (r"\bno more\b(?! than)", "no longer, stops"),
    (r"\bso many\b", "the number of"),
    (r"\bwhat(?:ever)? comes\b", "the noun"),
    (r"\bfor (?:anybody|those|him|her) who\b", "for clients that, open to anyone who"),
    (r"\bwho is late\b", "calls that miss their deadline"),
    (r"\b[Bb]eside\b(?! the point)", "besides, next to"),
    (r"\bby whomever\b", "by any client"),
    (r"\bin place of\b", "instead of"),
    (r"\ball the same\b", "nevertheless, or nothing"),
    (r"\bon (?:its|their) way\b", "in flight"),
    (r"\bas (?:good|many|much) as it likes\b", "without a limit"),
    (r"\bgoes? by\b", "uses, follows"),
    (r"\b(?:to|not) be had\b", "is available"),
    (r"\b[Ll]ooks? (?:how|whether)\b", "checks whether"),
    (r"\bgets? on\b", "makes progress"),
    (r"\bas it came\b", "unchanged"),
    (r"\b(?:is|are) got\b", "you can read ..."),
    (r"\bif need be\b", "if necessary, or the condition"),
    (r"\b[Ww]ho(?:m|ever)\b", "the noun: callers that, clients that"),
    (r"(?<!nyone )(?<!veryone )(?<!people )(?<!readers )(?<!reporters )\bwho\b(?![^.|]*\?)", "the noun: callers that, clients that"),
    (r"\b(?:some|any)body\b", "the noun: another client, any replica"),
    (r"\bat most so\b", "up to `limit`"),
    (r"\bcomes? into being\b", "is created"),
    (r"[;:] none: ", "none if"),
    (r"(?<![{&])\btold\b(?![:\[])", "reported, answered, the active voice"),
    (
        r"(?:^|[,;:(] |\b(?:all|than|from|beyond|by|as|to|with|of|for) )what "
        r"(?:is|are|was|were|has|had|they|it|came|comes|others|else|there|goes)\b(?![^.|]*\?)",
        "the noun",
    ),
]
PAGES = [
    "*.md",
    "docs/**/*.md",
    "docs/site/*.toml",
    "load/*.md",
    "benches/**/*.md",
    "examples/*/*.md",
    "src/config/default.toml",
    "crates/http/src/openapi/*.json",
    "deploy/grafana/dashboards/*.json",
    "deploy/alerts.yml",
    "deploy/packages/*.md",
]
# of these, the comments and texts
PROGRAMS = [
    "src/**/*.rs",
    "crates/**/*.rs",
    "crates/**/*.lua",
    "tests/**/*.rs",
    "tests/**/*.sh",
    "tests/**/*.py",
    "load/**/*.rs",
    "benches/**/*.rs",
    "examples/**/*.rs",
    "tools/**/*.rs",
    "scripts/*.sh",
    "scripts/release/*.py",
    "deploy/**/*.sh",
    "deploy/**/*.js",
    "deploy/**/*.yml",
    "deploy/**/*.yaml",
    "deploy/*.cfg",
    "*.yml",
    ".github/workflows/*.yml",
    "Dockerfile",
    "test.sh",
]


def prose(path):
    """The lines of a page without its code, or those of a program that are comments or texts."""
    is_code = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if path.suffix == ".md":
            is_code ^= line.startswith("```")
            if not is_code:
                yield number, re.sub(r"`[^`]*`", "``", line)
        elif path.suffix == ".toml" or path.name == "alerts.yml":
            yield number, line.lstrip("# ")
        else:
            comment = re.search(r"(?:^|\s)(?://[/!]?|--|#) (.*)", line)
            texts = [comment[1]] if comment else re.findall(r'"((?:[^"\\]|\\.)* (?:[^"\\]|\\.)*)"', line)
            for text in texts:
                yield number, re.sub(r"`[^`]*`", "``", text)


def breaches(patterns):
    for path in sorted({path for pattern in patterns for path in pathlib.Path().glob(pattern)}):
        if path != pathlib.Path("tests/prose.py"):
            for number, line in prose(path):
                for rule, instead in RULES:
                    if re.search(rule, line):
                        yield f"{path}:{number}: {line.strip()}\n    rather: {instead}"


def main():
    found = list(breaches([*PAGES, *PROGRAMS]))
    print("\n".join(found) or "no rule is broken")
    sys.exit(1 if found else 0)


main()
