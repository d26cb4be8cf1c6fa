"""Render Jinja2 templates in its sandbox, with the files of the compilation alone.

Templates include others from the directory of the first one, then from the search paths. A name that is not defined is
an error. An endless loop is the limit of the process.
"""

from __future__ import annotations

import posixpath
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import jinja2
from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.worker.files import SEARCH_PATHS, Files, confined
from kardinal.catalog.worker.template_filters import FORBIDDEN, filters
from kardinal.objects.text import cut

__all__ = ["Templates"]

_SHOWN = 1_000
_RANDOM_GLOBALS = ("lipsum",)


class Templates:
    """Renders files of a compilation."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def render(self, path: str, variables: Mapping[str, Any]) -> str:
        """Return the text of a template. Raises `CatalogError` with its file and line."""
        environment = _Environment(self._files, posixpath.dirname(path))
        try:
            return environment.get_template(posixpath.basename(path)).render(variables)
        except CatalogError as error:
            raise CatalogError(error.kind, error.problem, where=_place(error, path), remedy=error.remedy) from None
        except SecurityError as error:
            raise CatalogError(
                "refused",
                f"the template leaves its sandbox: {cut(str(error), _SHOWN)}",
                where=_place(error, path),
                remedy="Use plain values and filters; attributes that begin with an underscore are Python's own",
            ) from None
        except jinja2.TemplateNotFound as error:
            raise CatalogError(
                "render",
                f"the template {cut(str(error), _SHOWN)} is not found",
                where=_place(error, path),
                remedy=f"It is sought beside {path}, then in {', '.join(SEARCH_PATHS)}",
            ) from None
        except RecursionError:
            raise CatalogError(
                "limit", "templates include each other without end", where=Where(file=path), remedy="End the recursion"
            ) from None
        except Exception as error:
            raise CatalogError(
                "render",
                f"Jinja2: {cut(str(error), _SHOWN) or type(error).__name__}",
                where=_place(error, path),
                remedy="Correct the template",
            ) from None


class _Environment(SandboxedEnvironment):
    def __init__(self, files: Files, directory: str) -> None:
        super().__init__(
            undefined=jinja2.StrictUndefined,
            loader=_Loader(files, directory),
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.do"],
            cache_size=0,
        )
        self.filters.update(filters(files))
        for name in _RANDOM_GLOBALS:
            del self.globals[name]

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Refuse Python's own attributes, and methods whose result is another each time."""
        varying = any(isinstance(obj, kind) and attr in names for kind, names in FORBIDDEN.items())
        return not varying and super().is_safe_attribute(obj, attr, value)


class _Loader(jinja2.BaseLoader):
    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def get_source(
        self, environment: jinja2.Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Return the text of a template, and its path."""
        for base in (self._directory, *SEARCH_PATHS):
            found = confined(posixpath.join(base, template))
            if self._files.is_file(found):
                return self._files.read_text(found), found, None
        raise jinja2.TemplateNotFound(template)


def _place(error: BaseException, path: str) -> Where:
    """Return the file and line of the template where an error occurred."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return Where(file=error.filename or path, line=error.lineno)
    # Frames of templates have the path of the template; ours and those of Jinja2 have absolute ones.
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(("/", "<"))]
    if not lines:
        return Where(file=path)
    return Where(file=lines[-1].filename, line=lines[-1].lineno or 0)
