#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""doxygen_filter.py FOLDER HEADER...: writes FOLDER/HEADER, as Doxygen wants it.

The comment at the top becomes the description of the file, and "/// Result:" and the other headings become paragraphs of
their own; a line that is indented under one continues it.
"""
import pathlib
import re
import sys

HEADINGS = "Result|Shapes|Needs|Order|Completes|Errors|Cancels|Lifetime|Cost|Source|Example"


def without_links(line):
    """A form of address is no link to follow; what stands between backticks is none anyway."""
    parts = line.split("`")
    parts[::2] = [part.replace("file://", "file<span>:</span>//") for part in parts[::2]]
    return "`".join(parts)


def filtered(lines):
    out = []
    top = []
    at = 1  # after the licence
    while at < len(lines) and lines[at].startswith("//"):
        top.append(lines[at][2:].strip())
        at += 1
    if top:
        out += ["/** @file", *[without_links(line) for line in top], "*/"]
    for line in lines[at:]:
        heading = re.match(rf"^(\s*)/// ({HEADINGS}):\s*(.*)$", line)
        if heading:
            out.append(f"{heading[1]}/// @par {heading[2]}")
            line = f"{heading[1]}/// {heading[3]}"
        if re.match(r"^\s*friend .*;$", line):
            continue  # no part of the interface, and Doxygen makes dead links of them
        if "///" in line and not heading:
            line = re.sub(r"(///.*?)@", r"\1\\@", line)  # no command of Doxygen's
        out.append(without_links(line) if "///" in line else line)
    return "\n".join(out) + "\n"


def main():
    folder, *headers = sys.argv[1:]
    for header in headers:
        there = pathlib.Path(folder, header)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(filtered(pathlib.Path(header).read_text(encoding="utf-8").splitlines()), encoding="utf-8")


if __name__ == "__main__":
    main()
