"""What tests replace in a module is what the package looks up there.

After a move a name may still exist in the module that a test patches while nothing reads it there:
the patch does nothing, and the test passes without testing.
"""

import ast
import functools
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src/elmokit"


def sources():
    """Dotted name of each module -> its text."""
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*.py")
    }


def patches(tree, modules):
    """Yield line, module and name of every `setattr` on a module of the package."""
    aliases = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr"):
            continue
        match node.args:
            case [ast.Constant(value=str(target)), *_]:
                module, _, name = target.rpartition(".")
            case [ast.Name(id=alias), ast.Constant(value=str(name)), *_]:
                module = aliases.get(alias, "")
            case _:
                continue
        if module in modules:
            yield node.lineno, module, name


@functools.cache
def names_read(source):
    nodes = ast.walk(ast.parse(source))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def is_looked_up(module, name, modules):
    """Whether the module itself reads the name, or others read it as its attribute, late."""
    if name in names_read(modules[module]):
        return True
    last = module.rpartition(".")[2]
    late = re.compile(rf"\b{last}\.{name}\b|^ +from {re.escape(module)} import .*\b{name}\b", re.M)
    return any(late.search(text) for text in modules.values())


def test_every_patch_reaches_what_it_replaces():
    modules, found, idle = sources(), 0, []
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text) if "setattr" in text else ast.Module()
        for line, module, name in patches(tree, modules):
            found += 1
            if not is_looked_up(module, name, modules):
                idle.append(f"{path.relative_to(TESTS)}:{line}: nothing reads {name} in {module}")
    assert found
    assert idle == []
