#!/usr/bin/env bash
# From a `git push` to an image of that commit in prod, on this machine, in under two minutes; then a push whose test fails.
#
# Real are Git, the registry (Distribution), the API server with the kinds of crds/, the supply chain and the promotion.
# STAND-INS are what fetches, tests and builds (hack/standins, in the place of Flux, Tekton and kpack), and what applies
# the GitOps repository and runs its Deployments (`kardinal local up --simulate`). Needed: git, make, and Go for the registry.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ -x .venv/bin/kardinal ] || make --silent .venv/.installed
exec .venv/bin/python -m hack.standins.road "$@"
