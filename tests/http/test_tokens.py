"""Several tokens in one Secret: scopes, rotation, and faults that their owner hears of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import aiohttp
import pytest
import yaml

from kardinal.objects import SECRET
from kardinal.promotion.kinds import BUNDLE
from tests.http.conftest import REPOSITORY, start_api
from tests.support.clock import VirtualClock
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.secret_values import secret_value
from tests.support.webhook import HMAC_KEY, Ci, body_of, token_entry, webhook_secret
from tests.support.world import World

SHOP = secret_value("shop")
SHOP_KEY = secret_value("shop-key")


@pytest.fixture
async def shop(world: World, session: aiohttp.ClientSession) -> Ci:
    """Return a CI with a token for the Pipelines of the shop."""
    tokens = [token_entry("shop", token=SHOP, key=SHOP_KEY, pipelines=["shop-*"], types=["image"])]
    await world.apply(pipeline(REPOSITORY, provider="git"), pipeline(f"{REPOSITORY}2", name="shop-web", provider="git"))
    await world.client.create(SECRET, webhook_secret(tokens_yaml=yaml.safe_dump(tokens)))
    program = await start_api(world)
    return Ci(program.api.url, session, world.clock, token=SHOP, key=SHOP_KEY)


async def test_a_token_posts_to_the_pipelines_of_its_scope(world: World, shop: Ci) -> None:
    assert (await shop.post(body_of(pipeline="shop-web"))).status == 201
    for name in ("my-app", "not-there"):
        answer = await shop.post(body_of(pipeline=name))
        assert answer.status == 403
        assert answer.body["detail"] == f"token shop may not post to Pipeline {name}"
    assert (await shop.post(body_of(pipeline="shop-web", type="config"))).status == 403
    assert len(await world.objects(BUNDLE)) == 1


async def test_a_bundle_is_pinned_only_with_a_token_that_may_and_never_by_a_label(
    world: World, session: aiohttp.ClientSession
) -> None:
    tokens = [
        token_entry("plain", token=SHOP, key=SHOP_KEY),
        token_entry("release", token="release", key="release-key", mayPin=True),
    ]
    await world.apply(pipeline(REPOSITORY, provider="git"))
    await world.client.create(SECRET, webhook_secret(tokens_yaml=yaml.safe_dump(tokens)))
    url = (await start_api(world)).api.url
    plain = Ci(url, session, world.clock, token=SHOP, key=SHOP_KEY)
    release = Ci(url, session, world.clock, token="release", key="release-key")
    for ci in (plain, Ci(url, session, world.clock)):
        refused = await ci.post(body_of(pin=True))
        assert refused.status == 403
        assert "may not pin Bundles" in refused.body["detail"]
    assert (await plain.post(body_of(pin=False))).status == 201
    labelled = await release.post(body_of(labels={"kardinal.io/pin": "true"}))
    assert labelled.status == 422
    assert 'write "pin": true in the body' in str(labelled.body)
    posted = await release.post(body_of(pin=True))
    assert posted.status == 201
    made = await world.get(BUNDLE, posted.body["name"])
    assert made["metadata"]["annotations"]["kardinal.io/pin"] == "true"


async def test_a_token_is_not_good_with_the_key_of_another(shop: Ci) -> None:
    assert (await shop.post(body_of(pipeline="shop-web"), key=HMAC_KEY)).status == 401


async def test_two_tokens_may_use_one_idempotency_key(world: World, shop: Ci) -> None:
    old = Ci(shop.url, shop.session, shop.clock)
    answers = [await ci.post(body_of(pipeline="shop-web"), idempotency_key="run-7") for ci in (shop, old)]
    assert [answer.status for answer in answers] == [201, 201]
    assert len(await world.objects(BUNDLE)) == 2


@pytest.mark.virtual_time("the seconds that a Secret is remembered")
async def test_a_new_token_is_accepted_while_the_old_one_still_is(world: World, shop: Ci, clock: VirtualClock) -> None:
    body = body_of(pipeline="shop-web")
    assert (await shop.post(body)).status == 201
    tokens = [
        token_entry("shop", token=SHOP, key=SHOP_KEY, expires=str(clock.now() + timedelta(hours=1))),
        token_entry("shop-2", token="second", key="second-key"),
    ]
    await change_secret(world, tokens_yaml=yaml.safe_dump(tokens))
    await clock.advance(6)
    second = Ci(shop.url, shop.session, shop.clock, token="second", key="second-key")
    assert [(await ci.post(body)).status for ci in (shop, second)] == [201, 201]
    await clock.advance(3600)
    assert [(await ci.post(body)).status for ci in (shop, second)] == [401, 201]


@pytest.mark.virtual_time("the seconds that a Secret is remembered")
async def test_a_fault_is_told_where_the_owner_of_the_secret_looks(world: World, shop: Ci, clock: VirtualClock) -> None:
    await change_secret(world, tokens_yaml="- {name: shop, hash: in-the-clear, hmacKey: in-the-clear}")
    for _ in range(3):
        await clock.advance(6)
        assert (await shop.post(body_of(pipeline="shop-web"))).status == 401
    await world.settle()
    [event] = await world.events("InvalidTokens")
    assert (event["type"], event["regarding"]["kind"], event["regarding"]["namespace"]) == ("Warning", "Secret", TEAM)
    assert "tokens.yaml[0].hash" in event["note"]
    assert "in-the-clear" not in event["note"]
    assert "series" not in event
    assert (await Ci(shop.url, shop.session, shop.clock).post(body_of(pipeline="shop-web"))).status == 201


async def change_secret(world: World, **data: Any) -> None:
    changed = {name.replace("_", "."): text for name, text in data.items()}
    await world.client.patch(SECRET, "kardinal-webhook", TEAM, {"stringData": changed})
