"""Commands that a person can copy from a status or a message.

They are pasted into a shell, and parts of them were chosen by those who created the objects. So every such part is
quoted, and where one does not have the form that the command takes, no command is offered.
"""

from __future__ import annotations

import re
import shlex

from kardinal.api.bundle import Bundle, Image
from kardinal.api.image import ImageReferenceError, promoted_image

__all__ = ["create_command"]

_LONGEST = 400
"""Characters beyond which a command is no help in a sentence."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def create_command(bundle: Bundle, pipeline: str) -> str:
    """Return the command that creates another Bundle of the same images; empty where there is none.

    The command line creates Bundles of images alone. What a Bundle skips and its labels are left out: the author of
    another one decides about them anew.
    """
    artifacts, target, rollback = bundle.spec.artifacts, bundle.spec.intent.target, bundle.spec.intent.rollback
    if rollback is not None:
        environment, restored = rollback.environments[0], rollback.restores.name
        return shlex.join(["kardinal", "rollback", pipeline, "--env", environment, "--to", restored])
    if artifacts.kinds != ("images",):
        return ""
    words = ["kardinal", "create", "bundle", pipeline]
    for image in artifacts.images:
        option = _option(image)
        if not option:
            return ""
        words += ["--image", option]
    command = shlex.join([*words, *(["--target", target] if target else [])])
    return command if len(command) <= _LONGEST else ""


def _option(image: Image) -> str:
    """Return the value of `--image`; empty for an image that the command would refuse."""
    try:
        reference = promoted_image(image)
    except ImageReferenceError:
        return ""
    if image.name in ("", reference.repository.rpartition("/")[2]):
        return str(reference)
    return f"{image.name}={reference}" if _NAME.fullmatch(image.name) else ""
