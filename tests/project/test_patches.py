"""What tests replace in a module is what the package looks up there.

After a move a name may still exist in the module that a test patches while nothing reads it there:
the patch does nothing, and the test passes without testing.
"""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src/elmokit"


def sources():
    """Dotted name of each module -> its text."""
    paths = {
        path: path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.py")
    }
    return {
        ".".join(name.parts).removesuffix(".__init__"): path.read_text(encoding="utf-8")
        for path, name in paths.items()
    }


def patches(text):
    """Yield line, module and name of every `setattr` on a module of the package."""
    tree = ast.parse(text)
    aliases = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr":
            match node.args:
                case [ast.Constant(value=str(target)), *_]:
                    yield (node.lineno, *target.rpartition(".")[::2])
                case [ast.Name(id=alias), ast.Constant(value=str(name)), *_]:
                    yield node.lineno, aliases.get(alias, ""), name


def is_looked_up(module, name, modules):
    """Whether the module itself reads the name, or others read it as its attribute, late."""
    nodes = ast.walk(ast.parse(modules[module]))
    if any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id == name for n in nodes):
        return True
    last = module.rpartition(".")[2]
    late = re.compile(rf"\b{last}\.{name}\b|^ +from {re.escape(module)} import .*\b{name}\b", re.M)
    return any(late.search(text) for text in modules.values())


def test_every_patch_reaches_what_it_replaces():
    modules = sources()
    idle = [
        f"{path.relative_to(TESTS)}:{line}: nothing reads {name} in {module}"
        for path in sorted(TESTS.rglob("*.py"))
        if "setattr" in (text := path.read_text(encoding="utf-8"))
        for line, module, name in patches(text)
        if module in modules and not is_looked_up(module, name, modules)
    ]
    assert idle == []
