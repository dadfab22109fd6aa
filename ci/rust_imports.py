"""Which file of a Rust crate imports from which other one, for ci/layers.

The code is read as text: comments, strings and what is for tests only are blanked, then each `use` and each path is
followed through modules and re-exports to the file that defines the item.
"""

import re

# --- The text of a file, without what does not count ---

LITERAL = re.compile(
    r"""//[^\n]* | /\* | \b[bc]?r(?P<hashes>\#*)".*?"(?P=hashes) | "(?:\\.|[^"\\])*"
      | '(?:\\u\{[^}]*\}|\\x..|\\.|[^\\'])'""",
    re.VERBOSE | re.DOTALL,
)
CFG = re.compile(r"#(!?)\[\s*cfg\s*\(")
ATTRIBUTE = re.compile(r"\s*#\[")
ITEM_START = re.compile(
    r"\s*(?:pub(?:\([^)]*\))?\s+)?(fn|struct|enum|union|impl|mod|use|const|static|type|trait|unsafe|async|extern)\b"
)
CLOSING = {"(": ")", "[": "]", "{": "}"}


def blank(text):
    """Spaces instead of the text, so that places and lines stay as they are."""
    return re.sub(r"[^\n]", " ", text)


def matching(text, start):
    """The place after the bracket that closes the one at `start`."""
    opening, depth = text[start], 0
    for bracket in re.compile(f"[{re.escape(opening + CLOSING[opening])}]").finditer(text, start):
        depth += 1 if bracket[0] == opening else -1
        if depth == 0:
            return bracket.end()
    return len(text)


def without_literals(text):
    """Blanks comments, strings and characters."""
    parts, at = [], 0
    while found := LITERAL.search(text, at):
        end = found.end()
        if found[0] == "/*":  # Block comments nest.
            depth = 0
            for mark in re.compile(r"/\*|\*/").finditer(text, found.start()):
                depth += 1 if mark[0] == "/*" else -1
                end = mark.end()
                if depth == 0:
                    break
        parts += [text[at : found.start()], blank(text[found.start() : end])]
        at = end
    return "".join(parts) + text[at:]


def is_for_tests(condition):
    """Whether a condition of `cfg` holds in tests only."""
    return re.search(r"\btest\b", re.sub(r"\b(?:not|any)\s*\([^()]*\)", "", condition)) is not None


def end_of_item(text, at):
    """The place after the item, field or statement that begins at `at`."""
    while attribute := ATTRIBUTE.match(text, at):
        at = matching(text, attribute.end() - 1)
    item = ITEM_START.match(text, at)
    if item and item[1] == "use":
        return text.find(";", at) + 1 or len(text)
    while mark := re.compile(r"[()\[\]{};,]").search(text, at):
        at = mark.end()
        if mark[0] in ")]}":
            return mark.start()
        if mark[0] == "{":
            return matching(text, mark.start())
        if mark[0] in "([":
            at = matching(text, mark.start())
        elif mark[0] == ";" or not item:
            return at
    return len(text)


def shipped(raw):
    """The code that is not for tests only, as long as `raw`."""
    text, at = without_literals(raw), 0
    while found := CFG.search(text, at):
        at = matching(text, found.end() - 1)
        if is_for_tests(text[found.end() : at]):
            start, end = (0, len(text)) if found[1] else (found.start(), end_of_item(text, text.find("]", at) + 1))
            text = text[:start] + blank(text[start:end]) + text[end:]
            at = end
    return re.sub(r"\bpub\s*\(\s*in\b[^)]*\)", lambda visibility: blank(visibility[0]), text)


# --- The modules of a crate, and what they import ---

MOD = re.compile(r"((?:#\[[^\]]*\]\s*)*)(?:\bpub\s*(?:\([^)]*\))?\s*)?\bmod\s+(\w+)\s*([;{])")
USE = re.compile(r"\buse\s+([^;<]+);")
ITEM = re.compile(r"\b(?:struct|enum|union|trait|fn|type|const|static|macro_rules!)\s+(?:mut\s+)?(\w+)")
MACRO = re.compile(r"\bmacro_rules!\s*\w+\s*[({]")
PATH = re.compile(r"(?<!\w)(?<!::)[A-Za-z_]\w*(?:\s*::\s*[A-Za-z_]\w*)+")


class Failure(Exception):
    """What makes the check itself impossible."""


class Module:
    def __init__(self, path, parent, node, file, folder):
        self.path, self.parent = path, parent
        self.node = node or self  # The module whose file this is; another one for a `mod x { … }`.
        self.file, self.folder = file, folder  # The folder is where its child modules are.
        self.children, self.names, self.local_names, self.globs, self.items = {}, {}, {}, [], set()


class Import:
    """One import, from the module that says it to the module that defines what it names."""

    def __init__(self, place, path, source, target):
        self.place, self.path, self.source, self.target = place, path, source.node, target.node

    def __str__(self):
        return f"{self.place} imports {self.path}"

    def __lt__(self, other):
        file, line = self.place.rsplit(":", 1)
        other_file, other_line = other.place.rsplit(":", 1)
        return (file, int(line), self.path) < (other_file, int(other_line), other.path)


def leaves(text, start, end):
    """Each path of a `use`, with groups expanded: (place, segments, name or None for a glob)."""
    bases, path, name, at = [], [], None, None
    for token in re.compile(r"\w+|::|[{},*]|$").finditer(text, start, end):
        word = token[0]
        if word == "{":
            bases.append(path)
            path, at = list(path), None
        elif word in ("", ",", "}"):
            if at is not None:
                glob = path[-1] == "*"
                segments = path[:-1] if len(path) > 1 and path[-1] in ("self", "*") else path
                yield at, segments, None if glob else name if isinstance(name, str) else segments[-1]
            if word == "}":
                bases.pop()
            path, name, at = list(bases[-1] if bases else []), None, None
        elif word == "as":
            name = True
        elif name is True:
            name = word
        elif word != "::" or not path:  # A leading `::` stays: such a path begins with another crate.
            path.append(word)
            at = token.start()


class Tree:
    """The modules of one crate, from its lib.rs or main.rs."""

    def __init__(self, root, file):
        self.root, self.modules, self.declared, self.raw = root, {}, {}, []
        self.top = file.stem
        self.load((), None, file, file.parent)
        self.imports = sorted(found for raw in self.raw if (found := self.follow(*raw)))

    def load(self, path, parent, file, folder):
        """Reads a file and, in turn, those of the modules it declares."""
        raw = file.read_text()
        text = shipped(raw)
        whole = self.modules[path] = Module(path, parent, None, file, folder)
        regions = [(0, len(text), whole)]
        macros = [(found.start(), matching(text, found.end() - 1)) for found in MACRO.finditer(text)]

        def around(at):
            return max((region for region in regions if region[0] <= at < region[1]), key=lambda region: region[0])

        def place(at):
            return f"{file.relative_to(self.root)}:{text.count(chr(10), 0, at) + 1}"

        def is_of_user(at, segments):
            # In a macro, `super` and `self` are relative to whoever uses it.
            return segments[0] in ("self", "super") and any(start <= at < end for start, end in macros)

        for found in MOD.finditer(text):
            self.declare(found, raw, around(found.start())[2], place(found.start(2)), regions, text)
        for found in ITEM.finditer(text):
            start, _, module = around(found.start())
            if is_direct(text, start, found.start()):
                module.items.add(found[1])
        for found in USE.finditer(text):
            start, _, module = around(found.start())
            names = module.names if is_direct(text, start, found.start()) else module.local_names
            for at, segments, name in leaves(text, *found.span(1)):
                if is_of_user(at, segments):
                    continue
                if name is None:
                    module.globs.append(segments)
                elif name != "_":
                    names[name] = segments
                self.raw.append((module, segments, place(at), "glob" if name is None else "use"))
        for found in PATH.finditer(USE.sub(lambda use: blank(use[0]), text)):
            at, segments = found.start(), re.split(r"\s*::\s*", found[0])
            if not is_of_user(at, segments):
                self.raw.append((around(at)[2], segments, place(at), "path"))

    def declare(self, found, raw, parent, place, regions, text):
        """Adds the module that a `mod` declares."""
        name, path = found[2], parent.path + (found[2],)
        if found[3] == "{":
            module = Module(path, parent, parent.node, parent.file, parent.folder / name)
            module = parent.children.setdefault(name, self.modules.setdefault(path, module))
            regions.append((found.end(), matching(text, found.end() - 1), module))
            return
        elsewhere = re.search(r'path\s*=\s*"([^"]+)"', raw[found.start(1) : found.end(1)])
        if elsewhere:
            file = (parent.file.parent / elsewhere[1]).resolve()
        else:
            file = parent.folder / f"{name}.rs"
            file = file if file.exists() else parent.folder / name / "mod.rs"
        if not file.exists():
            raise Failure(f"{place} declares mod {name}, but {file.relative_to(self.root)} does not exist")
        self.declared[path] = place
        self.load(path, parent, file, file.parent if elsewhere or file.name == "mod.rs" else parent.folder / name)
        parent.children[name] = self.modules[path]

    def resolve(self, module, segments, seen=frozenset()):
        """The module a path leads to, and whether it names an item in it; None for another crate's."""
        here, rest = module, segments
        if segments[0] == "crate":
            here, rest = self.modules[()], segments[1:]
        elif segments[0] not in ("self", "super"):
            found = self.look_up(module, segments[0], seen, local=True)
            if found is None or found[1]:
                return found
            here, rest = found[0], segments[1:]
        for segment in rest:
            if segment in ("self", "super"):
                here = here.parent or here if segment == "super" else here
                continue
            found = self.look_up(here, segment, seen)
            if found is None or found[1]:
                return found or (here, True)
            here = found[0]
        return here, False

    def look_up(self, module, name, seen, local=False):
        """What a name means in a module, as `resolve` says it; None if it is not known there."""
        if name in module.children:
            return module.children[name], False
        if (module.path, name) in seen:
            return None
        seen = seen | {(module.path, name)}
        segments = module.names.get(name) or (local and module.local_names.get(name))
        if segments:
            # What another crate defines counts for the module of ours that passes it on.
            return self.resolve(module, segments, seen) or (module, True)
        if name in module.items:
            return module, True
        for glob in module.globs:
            found = self.resolve(module, glob, seen)
            if found and not found[1] and (inner := self.look_up(found[0], name, seen)):
                return inner
        return None

    def follow(self, module, segments, place, kind):
        """The import that a path is, if it leads to another file of the crate."""
        found = self.resolve(module, segments)
        if found is None or found[0].node is module.node:
            return None
        target, is_item = found
        is_above = module.path[: len(target.path)] == target.path
        if kind == "use" and not is_item and is_above:
            return None  # `use super::super::net`: what counts are the paths that begin with `net`.
        if kind == "path" and segments[0] not in ("crate", "self", "super"):
            first = self.look_up(module, segments[0], frozenset(), local=True)
            is_imported = segments[0] not in module.children and not is_above
            if first[1] or is_imported and first[0] is target:
                return None  # Its `use` counts already.
        return Import(place, "::".join(segments), module, target)

    def arrows(self, prefix=()):
        """The imports between the files of a folder, by (from, to). The folder's own file is a node too."""
        found, size = {}, len(prefix)
        own = self.modules[prefix].file.name if prefix else self.top
        for one in self.imports:
            ends = one.source.path, one.target.path
            if all(end[:size] == prefix for end in ends):
                source, target = (end[size] if len(end) > size else own for end in ends)
                if source != target:
                    found.setdefault((source, target), []).append(one)
        return found

    def tops(self):
        return [name for name, module in self.modules[()].children.items() if module.node is module]


def is_direct(text, start, at):
    """Whether a place is outside of all braces that were opened since `start`."""
    return text.count("{", start, at) == text.count("}", start, at)
