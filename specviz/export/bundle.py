"""The page's ES modules as one inline script, its style sheets as one sheet.

The modules use three forms, and only these are understood: ``import { a, b as c } from
"./x.js";``, ``export function`` (also async) and ``export const``. Each module becomes a function
that runs once, in the order in which they need each other.
"""

from __future__ import annotations

import re
from pathlib import Path

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const) (\w+)", re.MULTILINE)
_MODULE_SYNTAX = re.compile(r"^\s*(?:import|export)\b.*$|\bimport\s*[(.].*$", re.MULTILINE)
_CSS_IMPORT = re.compile(r'^@import url\("([\w.-]+\.css)"\);$', re.MULTILINE)


class BundleError(ValueError):
    """A module or sheet that cannot be put into a page of its own; the message says why."""


def bundle_script(entry: Path) -> str:
    """``entry`` and every module it needs, as one script. Raises BundleError."""
    order: list[Path] = []
    _visit(entry, order, ())
    script = '"use strict";\n' + "".join(_as_function(module) for module in order)
    if "</script" in script.lower() or "<!--" in script:
        raise BundleError("a module holds </script or <!--, which would end the inline script")
    return script


def bundle_style(*sheets: Path) -> str:
    """Style sheets with what they import, in order. Raises BundleError."""
    style = "".join(map(_sheet, sheets))
    if "</style" in style.lower():
        raise BundleError("a sheet holds </style, which would end the inline sheet")
    return style


def _visit(module: Path, order: list[Path], path: tuple[Path, ...]) -> None:
    """Put ``module`` behind all it imports."""
    if module in path:
        circle = " -> ".join(step.name for step in (*path[path.index(module) :], module))
        raise BundleError(f"modules import each other in a circle: {circle}")
    if module in order:
        return
    for _, name in _IMPORT.findall(_source(module)):
        _visit(module.with_name(name), order, (*path, module))
    order.append(module)


def _as_function(module: Path) -> str:
    """The module as a function called at once, whose result are its exports."""
    source = _source(module)
    exported = [name for _, name in _EXPORT.findall(source)]
    body = _IMPORT.sub(_destructured, source)
    body = _EXPORT.sub(r"\1 \2", body)
    if left := _MODULE_SYNTAX.search(_uncommented(body)):
        raise BundleError(f"{module.name}: {left.group().strip()!r} is no form this bundler knows")
    result = f"return {{ {', '.join(exported)} }};"
    return f"const {_variable(module.name)} = (() => {{\n{body}\n{result}\n}})();\n"


def _destructured(match: re.Match[str]) -> str:
    names = [part.split() for part in match.group(1).split(",") if part.strip()]
    if any(len(name) != 1 and (len(name) != 3 or name[1] != "as") for name in names):
        raise BundleError(f"{match.group()!r} is no form this bundler knows")
    taken = ", ".join(name[0] if len(name) == 1 else f"{name[0]}: {name[2]}" for name in names)
    return f"const {{ {taken} }} = {_variable(match.group(2))};"


def _uncommented(source: str) -> str:
    return re.sub(r"^\s*//.*$", "", source, flags=re.MULTILINE)


def _variable(name: str) -> str:
    return "module_" + re.sub(r"\W", "_", name.removesuffix(".js"))


def _source(module: Path) -> str:
    try:
        return module.read_text(encoding="utf-8")
    except OSError as error:
        raise BundleError(f"{module.name} cannot be read: {error.strerror}") from None


def _sheet(sheet: Path) -> str:
    return _CSS_IMPORT.sub(lambda match: _sheet(sheet.with_name(match.group(1))), _source(sheet))
