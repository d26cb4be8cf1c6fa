"""Templates of commit messages: placeholders such as `${bundle.version}`, without evaluation of expressions.

The author of a Bundle controls the values, so each value becomes one line of printable text, except for the list of
images. A line that looks like one of our trailers is quoted, because a promotion finds its commit by the trailers:
kardinal alone writes this last paragraph of the message. Hosts also interpret commit messages: `@alice` notifies a
person, and `Fixes #12` closes an issue. In a value, a space breaks up both; the text of the template itself is not
changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from kardinal.objects.suggestions import nearest
from kardinal.objects.text import cut
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.bundle import Provenance
from kardinal.promotion.api.image import bundle_version
from kardinal.promotion.api.pipeline import MessageTemplate
from kardinal.promotion.steps.images import images_of

__all__ = ["PLACEHOLDERS", "rendered_message", "template_problems"]

_SUBJECT = 200
_BODY = 16 << 10
"""The maximum length of subject and body, in characters."""

_PLACEHOLDER = re.compile(r"\$\{([^{}]*+)\}")
_OPENED = re.compile(r"\$\{(?![^{}\n]*\})")
_REFERENCE = re.compile(
    r"""
    (?<=(?<!\w)@) (?=\w|$)                # @alice; dana@example.org is no name
    | (?<=\#) (?=\w|$)                    # #12, acme/app#12
    | (?<=[!$&]) (?=\d|$)                 # !12, $12, &12 of GitLab
    | (?<=\bGH-) (?=\d|$)                 # GH-12
    | (?<=:) (?=//)                       # https://github.com/acme/app/issues/12
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""The places in a value, and the text after it, in which a host would find a person or an issue.

A space breaks them up. `kardinal.promotion.steps.markdown` uses a zero-width space, which does not belong in a Git
message.
"""
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
"""Name -> a function that returns its value for a promotion; empty if the Bundle has no such value."""

_SEVERAL_LINES = frozenset(["bundle.images"])
_FREE_TEXT = frozenset(["bundle.name", "bundle.version", "bundle.author", "bundle.commit"])
"""Values in which the author of a Bundle may write any text, from the point of view of a host."""


def template_problems(template: MessageTemplate | None) -> Iterator[tuple[str, str, str]]:
    """Yield (field, problem, remedy) for each unknown placeholder of a template."""
    for field, text in _parts(template):
        for name in dict.fromkeys(map(str.strip, _PLACEHOLDER.findall(text))):
            if name not in PLACEHOLDERS:
                like = nearest(name, PLACEHOLDERS)
                known = f"write ${{{like}}}" if like else f"known are {', '.join(PLACEHOLDERS)}"
                yield field, f"there is no placeholder ${{{name[:80]}}}", known
        if _OPENED.search(text):
            yield field, "a placeholder that begins with ${ does not end with }", "write ${bundle.version}"


def rendered_message(template: MessageTemplate, step: PromotionStep, bundle: Bundle) -> tuple[str, str]:
    """Return subject and body of a commit message; empty if the template has none, or its values are empty."""
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
        name = match[1].strip()
        if name not in PLACEHOLDERS:
            return match[0]
        lines = PLACEHOLDERS[name](step, bundle).splitlines()
        if name in _FREE_TEXT:
            lines = [_REFERENCE.sub(" ", line) for line in lines]
        return ("\n" if name in _SEVERAL_LINES else " ").join(lines)

    kept = _PLACEHOLDER.sub(value, text.replace("\r\n", "\n"))
    return "".join(character for character in kept if character.isprintable() or character == "\n")
