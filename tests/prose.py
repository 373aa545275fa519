"""Checks the style of pages, comments and program messages: python3 tests/prose.py [PATH...]

Joins wrapped lines to sentences, and ignores case. A sentence that passes the checks may nevertheless be bad English.
"""

import io
import pathlib
import re
import sys
import tokenize

# patterns, each with the text to write instead
RULES = [
    (r"^(?:\*\* )?(?:what|who|whom|whose|whoever|whatever)\b(?!.*\?)", "a noun as the subject"),
    (r"(?-i:[|;:] (?:What|Who|Whom|Whose)\b)(?![^.|]*\?)", "a noun as the subject"),
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
    (r"\bbeside\b(?! the point)", "besides, next to"),
    (r"\bby whomever\b", "by any client"),
    (r"\bin (?:the )?place of\b", "instead of, replaces"),
    (r"\ball the same\b", "nevertheless, or nothing"),
    (r"\bon (?:its|their) way\b", "in flight"),
    (r"\bas (?:good|many|much) as it likes\b", "without a limit"),
    (r"\bgoes? by\b", "uses, follows"),
    (r"\b(?:to|not) be had\b", "is available"),
    (r"\blooks? (?:how|whether)\b", "checks whether"),
    (r"\bgets? on\b", "makes progress"),
    (r"\bas it came\b", "unchanged"),
    (r"\b(?:is|are) got\b", "you can read ..."),
    (r"\bif need be\b", "if necessary, or the condition"),
    (r"\bwho(?:m|ever)\b", "the noun: callers that, clients that"),
    (
        r"(?<!nyone )(?<!veryone )(?<!people )(?<!readers )(?<!reporters )(?<!person )\bwho\b(?!.*\?)",
        "the noun: callers that, clients that",
    ),
    (r"\b(?:some|any)body\b", "the noun: another client, any replica"),
    (r"\bat most so\b", "up to `limit`"),
    (r"\bcomes? into being\b", "is created"),
    (r"[;:] none: ", "none if"),
    (r"(?<![{&])\btold\b(?![:\[])", "reported, answered, the active voice"),
    (
        r"(?:^|[,;:(] |\b(?:all|than|from|beyond|by|as|to|with|of|for) )what "
        r"(?:is|are|was|were|has|had|they|it|came|comes|others|else|there|goes)\b(?!.*\?)",
        "the noun",
    ),
    (
        r"^the same(?:[.,;:]|$| (?:for|but|as|with|of|to|at|by|in|from|after|without|where|when|if|over|under)\b)",
        "what it does: Adds ..., Like `x`, but for ...",
    ),
    (r"\bgo(?:es|ing)? on\b", "continue, resume, retry"),
    (r"\bof (?:which|whom)\b", "a second sentence, whose, some of them"),
    (r"^(?:has|lets) (?:a|an|the|it|its|one|all|each|every|others?|another)\b", "the verb: Reserves ..."),
    (r"\b(?:of|after|for|with) that (?:size|number|key|place|time|name|address|hash)\b", "the name of the parameter"),
    (r"\bat most\.$", "maximum, up to"),
    (r"\bno use of\b|\bis a use\b", "does not extend its lifetime"),
    (r"\balso (?:while|if|after|in|at)\b", "even while, including"),
    (r"\bfor the caller to\b", "the caller drops it"),
]
# patterns for later sentences of a comment
LATER = (r"^whether\b", "returns whether ...")

PAGES = [
    "*.md",
    "docs/**/*.md",
    "docs/site/*.toml",
    "load/*.md",
    "benches/**/*.md",
    "clients/*/*.md",
    "clients/*/docs/*.md",
    "console/*.md",
    "examples/*/*.md",
    "src/config/default.toml",
    "crates/http/src/openapi/*.json",
    "deploy/grafana/dashboards/*.json",
    "deploy/alerts.yml",
    "deploy/packages/*.md",
]
# programs, in which only the comments and texts are checked
PROGRAMS = [
    "{src,crates,tests,load,benches,examples,tools}/**/*.rs",
    "crates/**/*.lua",
    "{tests,console/src,console/tests,clients/*/src,clients/*/tests,examples}/**/*.{ts,tsx,mjs,js,py}",
    "{scripts,scripts/release,docs/site}/*.{sh,py,mjs}",
    "tests/**/*.sh",
    "deploy/**/*.{sh,js,yml,yaml,cfg}",
    "*.{yml,sh}",
    ".github/workflows/*.yml",
    "Dockerfile",
]
COMMENT_MARKERS = {"rs": r"//[/!]?", "ts": r"//", "tsx": r"//", "mjs": r"//", "js": r"//", "lua": r"--"}
# a Markdown line that ends the paragraph before it
BREAK = re.compile(r"^\s*(?:[-*+] |\d+\. |#|\||>|$)")


def expand(pattern):
    """Expands alternatives in braces. Returns all resulting patterns."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if not match:
        return [pattern]
    return [each for choice in match[1].split(",") for each in expand(pattern[: match.start()] + choice + pattern[match.end() :])]


def paragraphs(lines):
    """Joins numbered lines to paragraphs."""
    start, words = 0, []
    for number, line in lines:
        if BREAK.match(line) and words:
            yield start, " ".join(words)
            words = []
        if line.strip():
            start = start if words else number
            words.append(re.sub(r"^\s*(?:[-*+] |\d+\. |#+ )?", "", line).strip())
    if words:
        yield start, " ".join(words)


def page_lines(text):
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        # headings are not checked, because a heading may be a clause
        is_prose = not is_code and not line.lstrip().startswith(("```", "#"))
        yield number, line if is_prose else ""


def python_lines(text):
    lines = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0]] = token.string.lstrip("#! ")
        elif token.type == tokenize.STRING and token.line.lstrip().startswith(('"""', 'r"""')):
            for offset, line in enumerate(token.string.strip('r"').splitlines()):
                lines[token.start[0] + offset] = line.strip()
    for number, _ in enumerate(text.splitlines(), 1):
        yield number, lines.get(number, "")


def program_lines(text, marker, has_texts):
    in_block = in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(rf"\s*(?:{marker})(?: (.*))?$", line) or re.search(rf"\s(?:{marker}) (.*)", line)
        if comment:
            comment_text = comment[1] or ""
            in_code ^= comment_text.lstrip().startswith("```")
            yield number, "" if in_code or comment_text.lstrip().startswith("```") else comment_text
            continue
        in_code = False
        if marker == "//" and (in_block or re.match(r"\s*/\*", line)):
            in_block = "*/" not in line
            yield number, re.sub(r"^\s*/?\*+/?\s?|\s*\*/.*$", "", line)
            continue
        yield number, ""
        if not has_texts:
            continue
        for literal in re.findall(r'"((?:[^"\\]|\\.)* (?:[^"\\]|\\.)*)"', line):
            if len(literal.split()) > 2:
                yield number, literal
            yield number, ""


def prose(path):
    """Yields the prose lines of a file. An empty line ends a paragraph."""
    text, kind = path.read_text(), path.suffix[1:]
    if kind == "md":
        return page_lines(text)
    if kind == "toml" or path.name == "alerts.yml":
        return [(number, line.lstrip("# ")) for number, line in enumerate(text.splitlines(), 1)]
    if kind == "py":
        return python_lines(text)
    # the strings of tests are data, not texts
    has_texts = not {"tests", "load", "benches"} & set(path.parts)
    return program_lines(text, COMMENT_MARKERS.get(kind, "#"), has_texts)


def violations(paths):
    for path in paths:
        for number, paragraph in paragraphs(prose(path)):
            text = re.sub(r"`[^`]*`", "``", paragraph)
            sentences = re.split(r"(?<=[.!?]) +(?=[A-Z`*(\"])", text)
            for index, sentence in enumerate(sentences):
                for rule, instead in RULES if index == 0 else [*RULES, LATER]:
                    if re.search(rule, sentence, re.IGNORECASE):
                        yield f"{path}:{number}: {sentence}\n    rather: {instead}"


def main():
    patterns = [each for pattern in [*PAGES, *PROGRAMS] for each in expand(pattern)]
    all_paths = {path for pattern in patterns for path in pathlib.Path().glob(pattern)}
    skipped = {"node_modules", "dist", "target", ".venv"}
    chosen = [pathlib.Path(argument) for argument in sys.argv[1:]]
    paths = [
        path
        for path in sorted(all_paths)
        if path != pathlib.Path("tests/prose.py")
        and not skipped & set(path.parts)
        and (not chosen or any(root == path or root in path.parents for root in chosen))
    ]
    messages = list(violations(paths))
    print("\n".join(messages) or "no rule is broken")
    sys.exit(1 if messages else 0)


main()
