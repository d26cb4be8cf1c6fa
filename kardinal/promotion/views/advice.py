"""Recommend the next commands for the status of a Pipeline (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kardinal.promotion.api.commands import create_command
from kardinal.promotion.api.promotion_step import NO_AGENT
from kardinal.promotion.views.states import command_of
from kardinal.promotion.views.status import StatusView

__all__ = ["Next", "next_steps"]


@dataclass(frozen=True, slots=True)
class Next:
    """A recommended command with its purpose, such as `kardinal pr merge 3`, "approve prod".

    For a pull request of a host, `command` is the URL of its page.
    """

    command: str
    purpose: str


def next_steps(view: StatusView) -> Sequence[Next]:
    """Return the recommended commands; the first one lets the Bundle continue.

    Empty when the Bundle continues without a person.
    """
    return list(_steps(view))


def _steps(view: StatusView) -> Iterator[Next]:
    create = command_of("Bundle", "SkipDenied", pipeline=view.pipeline)
    if view.bundle is None:
        yield Next(create, "promote a first version")
        return
    outdated = view.bundle.status.condition("Outdated")
    if outdated is not None and outdated.reason != "EnvironmentAdded":
        again = create_command(view.bundle, view.pipeline) or create
        yield Next(again, "promote it by the Pipeline and gates of today")
    for hold in view.holds:
        yield Next(hold.command, hold.purpose)
    for pull in view.pull_requests:
        if pull.local:
            command = command_of("PromotionStep", "WaitingForMerge", number=str(pull.number))
            yield Next(f"kardinal pr show {pull.number}", f"read what {pull.environment} gets")
            yield Next(command, f"approve {pull.environment}")
        else:
            yield Next(pull.url, f"review {pull.environment}")
    for environment in view.environments:
        if environment.step is not None and environment.step.status.condition(NO_AGENT) is not None:
            yield Next(f"kardinal-agent --shard={environment.step.spec.shard}", f"serve {environment.name}")
        if environment.health:
            command = command_of("Health", environment.health, pipeline=view.pipeline, environment=environment.name)
            yield Next(command, f"see why {environment.name} is no longer healthy")
        if environment.state == "Blocked":
            command = command_of("Environment", "Blocked", pipeline=view.pipeline, environment=environment.name)
            yield Next(command, f"see what holds {environment.name}")
    yield from _after_the_end(view, view.bundle.metadata.name, create)


def _after_the_end(view: StatusView, bundle: str, create: str) -> Iterator[Next]:
    match view.phase:
        case "WaitingForGraph":
            command = command_of("Bundle", "WaitingForGraph", pipeline=view.pipeline, bundle=bundle)
            yield Next(command, "print a Graph for it, to be changed and created with kubectl create -f")
        case "Failed" | "SkipDenied":
            for environment in view.environments:
                if environment.state == "Failed":
                    command = command_of("PromotionStep", "Failed", bundle=bundle, environment=environment.name)
                    yield Next(command, f"try {environment.name} again, once the cause is mended")
            yield Next(create, "try again with another Bundle, once the cause is mended")
        case "Superseded":
            command = command_of("Bundle", "Superseded", pipeline=view.pipeline, bundle=bundle)
            yield Next(command, "promote it again, before the Bundle that took its place")
        case "Verified" if view.bundle is None or view.bundle.spec.intent.rollback is None:
            further = [each.name for each in view.environments if each.state == "NotTargeted"]
            for name in further[:1]:
                command = command_of("Environment", "NotTargeted", pipeline=view.pipeline, environment=name)
                yield Next(command, f"let it go on to {name}")
