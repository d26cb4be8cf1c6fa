"""Worlds to walk in."""

from __future__ import annotations

import pytest

from tests.graph.cluster import Cluster, Engine
from tests.graph.promotions import promotion_of


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def promotion(cluster: Cluster) -> Engine:
    """dev, staging and, behind two gates, prod: what the translator makes."""
    return promotion_of(cluster)
