"""Templates of commit messages: placeholders with values of the promotion, and nothing that is evaluated.

Values come from the author of the Bundle, so they are one line of printable text each, but for the list of images. A
line that looks like a trailer of ours is quoted: the last paragraph, with which a promotion finds its commit again,
is always made by kardinal, and no other line shall be taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from kardinal.api import Bundle, PromotionStep
from kardinal.api.bundle import Provenance
from kardinal.api.image import bundle_version
from kardinal.api.pipeline import MessageTemplate
from kardinal.objects.suggestions import nearest
from kardinal.objects.text import cut
from kardinal.steps.images import images_of

__all__ = ["PLACEHOLDERS", "rendered_message", "template_problems"]

_SUBJECT = 200
_BODY = 16 << 10
"""Characters of a message that are kept."""

_PLACEHOLDER = re.compile(r"\$\{\s*([^{}]*?)\s*\}")
_OPENED = re.compile(r"\$\{(?![^{}\n]*\})")
_OWN_TRAILER = re.compile(r"^(?=kardinal-[a-z-]+\s*:)", re.IGNORECASE | re.MULTILINE)


def _origin(bundle: Bundle) -> Provenance:
    return bundle.spec.provenance or Provenance()


_Value = Callable[[PromotionStep, Bundle], str]

PLACEHOLDERS: Mapping[str, _Value] = {
    "bundle.name": lambda step, bundle: bundle.metadata.name,
    "bundle.type": lambda step, bundle: bundle.spec.type,
    "bundle.version": lambda step, bundle: bundle_version(bundle.spec.artifacts),
    "bundle.images": lambda step, bundle: "\n".join(str(image.reference) for image in images_of(bundle)),
    "bundle.author": lambda step, bundle: _origin(bundle).author or "",
    "bundle.commit": lambda step, bundle: _origin(bundle).commit_sha or "",
    "bundle.ciRunURL": lambda step, bundle: _origin(bundle).ci_run_url or "",
    "environment.name": lambda step, bundle: step.spec.environment,
    "environment.path": lambda step, bundle: step.spec.path,
    "pipeline.name": lambda step, bundle: step.spec.pipeline,
    "pipeline.namespace": lambda step, bundle: step.metadata.namespace,
}
"""Name -> its value for one promotion; one that the Bundle does not say is empty."""

_SEVERAL_LINES = frozenset(["bundle.images"])


def template_problems(template: MessageTemplate | None) -> Iterator[tuple[str, str, str]]:
    """Yield (field, problem, remedy) for each placeholder of a template that there is not."""
    for field, text in _parts(template):
        for name in dict.fromkeys(_PLACEHOLDER.findall(text)):
            if name not in PLACEHOLDERS:
                like = nearest(name, PLACEHOLDERS)
                known = f"write ${{{like}}}" if like else f"known are {', '.join(PLACEHOLDERS)}"
                yield field, f"there is no placeholder ${{{name[:80]}}}", known
        if _OPENED.search(text):
            yield field, "a placeholder that begins with ${ does not end with }", "write ${bundle.version}"


def rendered_message(template: MessageTemplate, step: PromotionStep, bundle: Bundle) -> tuple[str, str]:
    """Return subject and body of a commit; empty where the template has none, or nothing is left of it."""
    parts = dict(_parts(template))
    subject = " ".join(_rendered(parts.get("subject", ""), step, bundle).split())
    body = _rendered(parts.get("body", ""), step, bundle).strip()
    return cut(_OWN_TRAILER.sub("> ", subject), _SUBJECT), cut(_OWN_TRAILER.sub("> ", body), _BODY)


def _parts(template: MessageTemplate | None) -> Iterator[tuple[str, str]]:
    for field in ("subject", "body"):
        if text := getattr(template, field, None):
            yield field, text


def _rendered(text: str, step: PromotionStep, bundle: Bundle) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in PLACEHOLDERS:
            return match[0]
        lines = PLACEHOLDERS[name](step, bundle).splitlines()
        return ("\n" if name in _SEVERAL_LINES else " ").join(lines)

    kept = _PLACEHOLDER.sub(value, text.replace("\r\n", "\n"))
    return "".join(character for character in kept if character.isprintable() or character == "\n")
