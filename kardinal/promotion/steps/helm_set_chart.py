"""`helm-set-chart`: set the versions of a Bundle's charts in every file of an environment that asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kardinal.edits.helm.chart_lock import relocked
from kardinal.edits.helm.chart_versions import Demand, PromotedChart, demands_of, set_demands
from kardinal.edits.images import ImageChange
from kardinal.edits.yaml.document_text import DocumentFile
from kardinal.edits.yaml.document_walk import DocumentError
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api import Bundle
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.promotion.steps.effect import Effect, EffectFinding
from kardinal.promotion.steps.environment_files import EnvironmentFiles, EnvironmentPath, named
from kardinal.tree.edit import EDITED_LIMIT, Changes, EditError
from kardinal.tree.file_patterns import files_of

__all__ = ["HELM_SET_CHART", "HelmSetChartConfig"]

_PATTERNS = ("**/*.yaml", "**/*.yml")
_CHART = "Chart.yaml"
_LOCK = "Chart.lock"
_SHOWN = 5


class HelmSetChartConfig(StepConfig):
    """The files that ask for charts."""

    files: Annotated[
        tuple[EnvironmentPath, ...],
        Field(
            max_length=64,
            description="Files and patterns: each `Chart.yaml`, HelmRelease, OCIRepository, Application and "
            "ApplicationSet in them is looked at; by default all YAML files of the environment.",
        ),
    ] = ()


@dataclass(frozen=True, slots=True)
class _Asking:
    """A file that asks for promoted charts."""

    path: str
    content: bytes
    file: DocumentFile
    wanted: Sequence[tuple[Demand, PromotedChart]]


def _plan(context: EditContext, config: HelmSetChartConfig) -> Changes:
    files = EnvironmentFiles.of(context)
    charts = _charts_of(context.bundle)
    changes: dict[str, bytes | None] = {}
    for one in _asking(files, config, charts, []) if charts else ():
        with named(files.full(one.path)):
            changes[files.full(one.path)] = edited = set_demands(one.file, one.wanted)
        if one.path.rpartition("/")[2] == _CHART and edited != one.content:
            changes |= _locked(files, one, edited)
    return changes


def _verify(context: EditContext, config: HelmSetChartConfig) -> Effect:
    charts = _charts_of(context.bundle)
    if not charts or context.step.spec.update.verify_effect == "off":
        return Effect()
    files = EnvironmentFiles.of(context)
    others = list[str]()
    asked = [chart for one in _asking(files, config, charts, others) for _, chart in one.wanted]
    findings = []
    for chart in charts:
        if not any(chart is found for found in asked):
            near = nearest(chart.name, others, cutoff=0.3)
            shown = ", ".join(dict.fromkeys([near, *others] if near else others[:_SHOWN])) or "no chart at all"
            message = f"no file asks for chart {chart.name} of {chart.repository}, but {shown}"
            findings.append(EffectFinding(path=files.directory, certain=True, message=message))
    return Effect(findings=findings)


def _charts_of(bundle: Bundle) -> list[PromotedChart]:
    return [
        PromotedChart(chart.name, chart.repository, chart.version, chart.digest)
        for chart in bundle.spec.artifacts.charts
    ]


def _asking(
    files: EnvironmentFiles, config: HelmSetChartConfig, charts: Sequence[PromotedChart], others: list[str]
) -> Iterator[_Asking]:
    """Yield the files that ask for one of `charts`. Other charts that they ask for are appended to `others`."""
    patterns = config.files or _PATTERNS
    for path in dict.fromkeys(path for pattern in patterns for path in files_of(files.tree, pattern)):
        if (files.tree.size(path) or 0) > EDITED_LIMIT and not config.files:
            continue
        content = files.read(path)
        try:
            file = DocumentFile.parse(content)
        except DocumentError as error:
            if config.files:
                raise EditError(files.full(path), error.message) from error
            continue  # a template, or a file that cannot ask for a chart
        demands = list(demands_of(file))
        wanted = [(demand, chart) for demand in demands for chart in charts if demand.is_for(chart)]
        others += [str(demand) for demand in demands if not any(demand is found for found, _ in wanted)]
        if wanted:
            yield _Asking(path, content, file, wanted)


def _locked(files: EnvironmentFiles, chart: _Asking, edited: bytes) -> dict[str, bytes | None]:
    """Return the `Chart.lock` beside a chart, updated for its new dependencies.

    Raises `EditError` if the promoted chart is vendored in `charts/`.
    """
    directory = chart.path.rpartition("/")[0]
    start = f"{directory}/" if directory else ""
    for _, promoted in chart.wanted:
        for name in files.tree.entries(f"{start}charts"):
            if name == promoted.name or (name.startswith(f"{promoted.name}-") and name.endswith(".tgz")):
                raise EditError(
                    files.full(f"{start}charts/{name}"),
                    f"holds chart {promoted.name} itself, and its new version is not downloaded",
                    remedy="Run `helm dependency update` and commit the result, or do not keep charts/ in Git",
                )
    lock = files.tree.read(f"{start}{_LOCK}")
    if lock is None:
        return {}
    path = files.full(f"{start}{_LOCK}")
    with named(path):
        charts = [promoted for _, promoted in chart.wanted]
        return {path: relocked(lock, before=chart.content, after=edited, charts=charts)}


def _no_images(before: bytes | None, after: bytes | None) -> Sequence[ImageChange]:
    return ()


HELM_SET_CHART = StepDeclaration(
    name="helm-set-chart",
    about="Sets the versions of the Bundle's charts in `Chart.yaml`, and in manifests of Flux and Argo CD.",
    role=Role.EDIT,
    config=HelmSetChartConfig,
    edit=FileEdit(plan=_plan, image_changes=_no_images, verify=_verify),
    takes=frozenset(["charts"]),
)
