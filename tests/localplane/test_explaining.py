"""What people are told of fields is in a file that a plane opens when somebody asks, and never on the event loop."""

from __future__ import annotations

from kardinal.localplane.builtin import descriptions
from tests.localplane.wire import Http


async def test_the_texts_are_read_off_the_loop_when_they_are_wanted(http: Http) -> None:
    descriptions.cache_clear()
    for _ in range(2):
        found = await http.get("/openapi/v3/api/v1")
        config_map = found.body["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"]
        assert config_map["description"].startswith("ConfigMap holds configuration data")
    assert descriptions.cache_info().misses == 1
