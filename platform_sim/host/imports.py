"""Import strings: how a process is told which code of the user's it runs.

Rules: `module:attribute` names an object (dots go deeper), `module:factory()` what a call without
arguments returns. The current directory is importable, as it is for uvicorn. Every error says what
to type instead.

Not here: what the loaded thing is used for.
"""

import difflib
import importlib
import inspect
import os
import re
import sys
from typing import Any

from platform_sim.host.errors import LaunchError

__all__ = ["TargetError", "load", "load_app"]

_SHAPE = re.compile(r"(?P<module>[\w.]+):(?P<attribute>[\w.]+)(?P<call>\(\))?")


class TargetError(LaunchError):
    """An import string names nothing that can be used."""


def load(target: str) -> Any:
    """Return what an import string names.

    Raises:
        TargetError: It has another shape, or its module or attribute does not exist, or its module
            or factory raised (that error is the cause).
    """
    shape = _SHAPE.fullmatch(target)
    if shape is None:
        raise TargetError(
            f"{target!r} is no import string: write module:attribute, for example main:app, or "
            "module:factory() to call a factory"
        )
    found = _import(shape["module"], target)
    for name in shape["attribute"].split("."):
        found = _attribute(found, name, target)
    if not shape["call"]:
        return found
    try:
        return found()
    except Exception as error:
        raise TargetError(f"{target} raised {type(error).__name__}: {error}") from error


def load_app(target: str) -> Any:
    """Return the ASGI app an import string names.

    Raises:
        TargetError: As `load`; or it is no ASGI app.
    """
    app = load(target)
    if not callable(app):
        raise TargetError(
            f"{target} is no ASGI app but {type(app).__name__}, which is not callable"
        )
    if not _takes_scope(app):
        raise TargetError(
            f"{target} takes no (scope, receive, send): if it is a factory, write {target}()"
        )
    return app


def _import(module: str, target: str) -> Any:
    directory = os.getcwd()  # noqa: PTH109  sys.path holds strings
    if directory not in sys.path and "" not in sys.path:
        sys.path.insert(0, directory)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise TargetError(
                f"{target}: module {module} needs {missing.name}, which is not "
                f"installed ({missing})"
            ) from missing
        raise TargetError(
            f"{target}: no module {missing.name!r}: start in the directory that holds it (this is "
            f"{directory}), or install it into {sys.prefix}"
        ) from None
    except Exception as error:
        raise TargetError(
            f"{target}: importing {module} raised {type(error).__name__}: {error}"
        ) from error


def _attribute(found: Any, name: str, target: str) -> Any:
    try:
        return getattr(found, name)
    except AttributeError:
        near = difflib.get_close_matches(name, [each for each in dir(found) if each[0] != "_"])
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        raise TargetError(f"{target}: there is no {name!r} in it{hint}") from None


def _takes_scope(app: Any) -> bool:
    try:
        inspect.signature(app).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:
        return True  # no signature to be had: let it show
    return True
