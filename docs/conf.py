"""The documentation as a site: `make docs`. The sources are the repository's own pages, so that links between them, the
README and the notebooks are the same in a checkout, on a forge and here."""

from __future__ import annotations

import posixpath
from importlib import metadata
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from sphinx.application import Sphinx

project = "jax_enzyme"
author = "the jax_enzyme authors"
release = metadata.version("jax-enzyme")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_copybutton"]
include_patterns = [
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**.md", "docs/**.rst",
    "notebooks/*.ipynb", "examples/**/README.md",
]  # fmt: skip
html_theme = "furo"
html_title = project

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # the notebooks hold their output, and the tests run them

autodoc_typehints = "none"  # signatures show them
autodoc_member_order = "bysource"
default_role = "code"

root_doc = "README"


def contents(text: str) -> str:
    """The table of contents: a tree for each section of docs/README.md, of the pages that its list links to."""
    trees: list[str] = []
    caption = ""
    tokens = MarkdownIt().parse(text)
    for before, token in pairwise(tokens):
        if token.type == "inline" and before.type == "heading_open":
            caption = token.content
            trees.append(f"\n:::{{toctree}}\n:hidden:\n:caption: {caption}\n\n")
        elif token.type == "inline" and trees:
            for child in token.children or ():
                target = str(child.attrGet("href")) if child.type == "link_open" else ""
                if target and not target.startswith("http"):
                    trees[-1] += f"/{posixpath.normpath(f'docs/{target}')}\n"
                    break
    return "".join(f"{tree}:::\n" for tree in trees if "/" in tree)


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    match name:
        case "README":
            source[0] += contents((Path(app.srcdir) / "docs" / "README.md").read_text("utf-8"))
        case "docs/README":  # the list itself is the side bar
            source[0] = f"---\norphan: true\n---\n{source[0]}"
        case "docs/decisions/README":
            source[0] += "\n:::{toctree}\n:hidden:\n:glob:\n\n0*\n:::\n"
        case _:
            pass


def write_index(app: Sphinx, error: Exception | None) -> None:
    if error is None:
        page = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=README.html">\n'
        (Path(app.outdir) / "index.html").write_text(page, "utf-8")


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_contents)
    app.connect("build-finished", write_index)
