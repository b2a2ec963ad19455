#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""make_pages.py FOLDER: the pages that Doxygen reads: docs/*.md, with the listings of the examples in the guide."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def listing_of(name):
    lines = (ROOT / "examples" / f"{name}.cpp").read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[1:])  # after the licence


def main():
    out = pathlib.Path(sys.argv[1])
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        # A label of its own for every page: Doxygen makes the name of the file from it.
        title = re.match(r"# (.+)\n", text)
        if not title:
            sys.exit(f"{page}: expected \"# Title\" on the first line")
        if page.name == "guide.md":
            parts = re.split(r"^## (\S+)\n", text, flags=re.M)
            text = parts[0]
            for name, prose in zip(parts[1::2], parts[2::2]):
                number, words = name.split("_", 1)
                text += (f"## {int(number)}. {words.replace('_', ' ')} {{#chapter_{number}}}\n{prose.rstrip()}\n\n"
                         f"`examples/{name}.cpp`\n\n```cpp\n{listing_of(name)}\n```\n\n")
        # Links that leave docs/ are for those who read the repository.
        text = re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\)", r"`\1`", text)
        if page.name == "guide.md":
            text = text.replace("# Guide\n", "# Guide\n\n[TOC]\n", 1)
        (out / page.name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
