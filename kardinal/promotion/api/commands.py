"""Commands that a person can copy from a status or a message.

People paste them into a shell, although the creators of the objects have chosen parts of them. So every such part is
quoted, and if a part does not have the form that the command takes, no command is offered.
"""

from __future__ import annotations

import re
import shlex

from kardinal.objects.image_reference import ImageReferenceError
from kardinal.promotion.api.bundle import Bundle, Image
from kardinal.promotion.api.image import promoted_image

__all__ = ["create_command"]

_LONGEST = 400
"""The longest command that is shown, in characters."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def create_command(bundle: Bundle, pipeline: str) -> str:
    """Return the command that creates another Bundle of the same images; empty if there is no such command.

    The CLI creates only Bundles of images. `intent.skip` and labels are left out, because the author of the new Bundle
    has to choose them again.
    """
    artifacts = bundle.spec.artifacts
    target = bundle.spec.intent.target
    rollback = bundle.spec.intent.rollback
    if rollback is not None:
        environment = rollback.environments[0]
        restored = rollback.restores.name
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
