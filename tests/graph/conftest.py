"""Worlds to walk in."""

from __future__ import annotations

import pytest

from kardinal.promotion.kinds import BUNDLE
from tests.graph.cluster import Cluster, Engine
from tests.graph.promotions import BUNDLE_NODE, FREEZE_NODE, gate, step


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def promotion(cluster: Cluster) -> Engine:
    """dev, staging and, behind two gates, prod: what the translator makes."""
    cluster.create(BUNDLE, "b1", spec={"type": "image"})
    return Engine(
        cluster,
        BUNDLE_NODE,
        step("dev"),
        step("staging", upstream="dev"),
        gate("soak", upstream="staging"),
        gate("hours", upstream="staging"),
        step("prod", upstream="staging", gates=("soak", "hours")),
        FREEZE_NODE,
    )
