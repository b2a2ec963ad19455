#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What the documentation says against what there is.

check.py sources        the guide has a chapter for each example, in order; the tables have every error and every algorithm;
                        links between the files of the repository lead somewhere
check.py snippets FILE  writes FILE: every "now write" of the tables "coming from", as C++ to be compiled
check.py html FOLDER    every link in the HTML leads to a page, and to a place on it, that is there
check.py list-headers   the public headers, relative to the top
"""
import html.parser
import pathlib
import re
import sys
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
problems = []


def problem(where, what):
    problems.append(f"{where}: {what}")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def same(where, what, expected, found):
    for missing in [x for x in expected if x not in found]:
        problem(where, f"{what} {missing} is missing")
    for extra in [x for x in found if x not in expected]:
        problem(where, f"{what} {extra} does not exist")
    if not problems and list(expected) != list(found):
        problem(where, f"{what}s: expected the order {', '.join(expected)}")


def public_headers():
    hidden = ("detail/", "impl/", "collective/schedule/", "collective/shared/", "transport/", "messages/")
    headers = []
    for header in sorted((ROOT / "include" / "cohort").rglob("*.hpp")):
        inside = header.relative_to(ROOT / "include" / "cohort").as_posix()
        if not any(inside.startswith(h) or f"/{h}" in f"/{inside}" for h in hidden):
            headers.append(header.relative_to(ROOT).as_posix())
    return headers


def check_guide():
    examples = [p.stem for p in sorted((ROOT / "examples").glob("[0-9][0-9]_*.cpp"))]
    same("docs/guide.md", "chapter", examples, re.findall(r"^## (\S+)", read("docs/guide.md"), re.M))


def check_errors():
    enumeration = re.search(r"enum class errc : int \{(.*?)\};", read("include/cohort/error.hpp"), re.S)[1]
    codes = re.findall(r"^  (\w+)(?: = 1)?,", enumeration, re.M)
    same("docs/errors.md", "error", codes, re.findall(r"^\| `(\w+)` \|", read("docs/errors.md"), re.M))


def check_algorithms():
    pairs = re.findall(r"\{operation_kind::(\w+), algorithm::(\w+)", read("include/cohort/collective/algorithm.hpp"))
    found = []
    for operations, algorithm in re.findall(r"^\| ([\w, ]+) \| (\w+) \|", read("docs/algorithms.md"), re.M):
        if operations != "operation":
            found += [(operation, algorithm) for operation in operations.split(", ")]
    same("docs/algorithms.md", "algorithm", sorted(f"{a} of {o}" for o, a in pairs), sorted(f"{a} of {o}" for o, a in found))


def check_markdown_links():
    pages = [p for p in ROOT.rglob("*.md") if "build" not in p.relative_to(ROOT).parts]
    for page in pages:
        text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target) or target.startswith("#"):
                continue
            if not (page.parent / target.split("#")[0]).exists():
                problem(page.relative_to(ROOT), f"leads to {target}, which is not there")


def snippets():
    cells = []
    for page in ("from_pytorch", "from_mpi", "from_nccl"):
        for line in read(f"docs/{page}.md").splitlines():
            cell = re.match(r"^\| .* \| `([^`]*;)`[^`|]* \|$", line)
            if cell:
                cells.append((page, cell[1]))
    return cells


def write_snippets(path):
    # "return cohort::run(train);" is what main does; the rest is inside a rank.
    lines = ["// SPDX-License-Identifier: BSL-1.0", "#include <cohort/cohort.hpp>", "using namespace cohort;",
             "namespace {", "struct settings_type { int batch = 8; float rate = 0.1f; };",
             "[[maybe_unused]] task<> train(communicator<cpu>) { co_return; }"]
    for number, (page, code) in enumerate(snippets()):
        lines.append(f"// docs/{page}.md")
        if "run(train)" in code:
            lines.append(f"[[maybe_unused]] int main_{number}() {{ {code} }}")
            continue
        lines += [f"[[maybe_unused]] task<> row_{number}(communicator<cpu> world, std::vector<float> grad, std::vector<float> in,",
                  "    std::vector<float> out, std::vector<int> counts, float loss, settings_type settings) {",
                  "  (void)grad, (void)in, (void)out, (void)counts, (void)loss, (void)settings;",
                  f"  {code}", "  co_return;", "}"]
    lines += ["}  // namespace", ""]
    pathlib.Path(path).write_text("\n".join(lines), encoding="utf-8")
    if len(snippets()) < 40:
        problem("docs", f"only {len(snippets())} rows of the tables \"coming from\" could be read")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            if value and (name == "href" or (name == "src" and tag != "a")):
                self.links.append(value)


def check_html(folder):
    folder = pathlib.Path(folder)
    pages = {p.name: Page(p.read_text(encoding="utf-8")) for p in folder.glob("*.html")}
    followed = 0
    for name, page in pages.items():
        for link in page.links:
            if re.match(r"(https?|mailto|javascript):", link):
                continue
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            followed += 1
            if target and not (folder / target).exists():
                problem(name, f"leads to {target}, which is not there")
            elif anchor and anchor not in pages.get(target or name, page).anchors:
                problem(name, f"leads to #{anchor} of {target or name}, which is not there")
    titles = [title for name in pages for title in re.findall(r"<title>(.*?)</title>", (folder / name).read_text(encoding="utf-8"))]
    for header in public_headers():
        wanted = f"{header.removeprefix('include/')} File Reference"
        if not any(title.endswith(wanted) for title in titles):
            problem(header, "has no page of its own")
    if followed < 1000:
        problem(folder, f"only {followed} links were found")
    print(f"{len(pages)} pages, {followed} links followed")


def main():
    what, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if what == "sources":
        check_guide()
        check_errors()
        check_algorithms()
        check_markdown_links()
    elif what == "snippets":
        write_snippets(*arguments)
    elif what == "html":
        check_html(*arguments)
    elif what == "list-headers":
        print("\n".join(public_headers()))
    else:
        sys.exit(__doc__)
    for line in problems:
        print(line, file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
