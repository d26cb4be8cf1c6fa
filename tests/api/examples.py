"""Resources as the reference design writes them; their shape is what users were promised."""

PIPELINE = """
apiVersion: kardinal.io/v1alpha1
kind: Pipeline
metadata: {name: my-app, namespace: default}
spec:
  git:
    url: https://github.com/myorg/gitops-repo
    branch: main
    layout: directory
    provider: github
    secretRef: { name: github-token }
  environments:
    - name: dev
      path: environments/dev
      update: { strategy: kustomize }
      approval: auto
    - name: staging
      path: environments/staging
      update: { strategy: kustomize }
      approval: auto
    - name: prod
      path: environments/prod
      update: { strategy: kustomize }
      approval: pr-review
      shard: prod-cluster
      health:
        timeout: 15m
      delivery:
        delegate: argoRollouts
  historyLimit: 20
"""

FAN_OUT = """
apiVersion: kardinal.io/v1alpha1
kind: Pipeline
metadata: {name: fan-out, namespace: default}
spec:
  git: {url: https://github.com/myorg/gitops-repo}
  environments:
    - name: staging
    - name: prod-us-east
      dependsOn: [staging]
      approval: pr-review
      health:
        type: argocd
        argocd: { name: my-app-prod-us-east }
        cluster: prod-us-east
    - name: prod-eu-west
      dependsOn: [staging]
      approval: pr-review
      health:
        type: flux
        flux: { name: my-app-prod, namespace: flux-system }
      steps:
        - uses: git-clone
        - uses: run-tests
          config: {url: https://test-runner.internal/validate, timeout: 5m}
"""

IMAGE_BUNDLE = """
apiVersion: kardinal.io/v1alpha1
kind: Bundle
metadata:
  name: my-app-v1-29-0-1712567890
  namespace: default
  labels: {kardinal.io/pipeline: my-app}
  annotations: {kardinal.io/pin: "false"}
spec:
  type: image
  artifacts:
    images:
      - name: my-app
        reference: ghcr.io/myorg/my-app:1.29.0
        digest: sha256:a1b2c3d4e5f6...
  provenance:
    commitSHA: "abc123def456"
    ciRunURL: "https://github.com/myorg/my-app/actions/runs/12345"
    author: "dependabot[bot]"
    buildTimestamp: "2026-04-09T10:00:00Z"
  intent:
    target: prod
"""

CONFIG_BUNDLE = """
apiVersion: kardinal.io/v1alpha1
kind: Bundle
metadata:
  name: my-app-config-update-1712567890
  namespace: default
  labels: {kardinal.io/pipeline: my-app}
spec:
  type: config
  artifacts:
    gitCommit:
      repository: https://github.com/myorg/app-config
      sha: "abc123def456"
      message: "Update resource limits for all environments"
  provenance:
    commitSHA: "abc123def456"
    ciRunURL: "https://github.com/myorg/app-config/actions/runs/67890"
    author: "platform-team"
"""

POLICY_GATE = """
apiVersion: kardinal.io/v1alpha1
kind: PolicyGate
metadata:
  name: no-weekend-deploys
  namespace: platform-policies
  labels:
    kardinal.io/scope: org
    kardinal.io/applies-to: prod
    kardinal.io/type: gate
spec:
  expression: "!schedule.isWeekend"
  message: "Production deployments are blocked on weekends"
  recheckInterval: 5m
"""

SKIP_PERMISSION = """
apiVersion: kardinal.io/v1alpha1
kind: PolicyGate
metadata:
  name: allow-staging-skip-for-hotfix
  namespace: platform-policies
  labels:
    kardinal.io/scope: org
    kardinal.io/type: skip-permission
    kardinal.io/applies-to: staging
spec:
  expression: "bundle.labels.hotfix == true"
  message: "Hotfix bundles may skip staging"
"""

METRIC_CHECK = """
apiVersion: kardinal.io/v1alpha1
kind: MetricCheck
metadata: {name: success-rate, namespace: default}
spec:
  provider: { type: prometheus, address: "http://prometheus:9090" }
  query: |
    sum(rate(http_requests_total{app="{{ .AppName }}",status!~"5.."}[5m]))
    / sum(rate(http_requests_total{app="{{ .AppName }}"}[5m]))
  successCondition: ">= 0.99"
  failureCondition: "< 0.95"
  noDataBehavior: hold
"""

SUBSCRIPTION = """
apiVersion: kardinal.io/v1alpha1
kind: Subscription
metadata: {name: my-app-config-watch, namespace: default}
spec:
  pipeline: my-app
  source:
    type: gitCommit
    gitCommit:
      repository: https://github.com/myorg/app-config
      branch: main
      path: configs/my-app/
      interval: 5m
"""

ALL = {
    "pipeline": PIPELINE,
    "fan-out pipeline": FAN_OUT,
    "image bundle": IMAGE_BUNDLE,
    "config bundle": CONFIG_BUNDLE,
    "gate": POLICY_GATE,
    "skip permission": SKIP_PERMISSION,
    "metric check": METRIC_CHECK,
    "subscription": SUBSCRIPTION,
}
