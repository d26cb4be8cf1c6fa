// Invented documents: what the pictures of the design show, and 1,000 Pipelines at rest around them.

import type {
  ActionAnswer,
  BundleCard,
  BundleDocument,
  DrawnEnvironment,
  DrawnGate,
  EnvironmentCard,
  EnvironmentDocument,
  GateDocument,
  GraphDocument,
  Overview,
  PipelineDocument,
  PipelineRow,
  StateMark,
  Tone,
  Viewer,
} from "../src/api/types";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const ago = (milliseconds: number) => new Date(Date.now() - milliseconds).toISOString();

const TONES: Readonly<Record<string, Tone>> = {
  Verified: "ok",
  PASS: "ok",
  Promoting: "move",
  HealthChecking: "move",
  WaitingForMerge: "you",
  Blocked: "held",
  FAIL: "held",
  Failed: "bad",
  Degraded: "warn",
  CannotBeSeen: "warn",
};
const mark = (name: string, kind = "PromotionStep"): StateMark => ({
  kind,
  name,
  tone: TONES[name] ?? "rest",
  meaning: "The sentence of docs/states.md.",
});

type CardExtra = Partial<EnvironmentCard>;
function card(
  name: string,
  order: number,
  version: string,
  state: string,
  since: number,
  extra: CardExtra = {},
): EnvironmentCard {
  return { name, order, upstreams: [], state: mark(state), version, behind: 0, since: ago(since), ...extra };
}

function row(
  namespace: string,
  name: string,
  need: PipelineRow["need"],
  why: PipelineRow["why"],
  cards: EnvironmentCard[],
  extra: Partial<PipelineRow> = {},
): PipelineRow {
  const chained = cards.map((each, index) => ({ ...each, upstreams: index ? [cards[index - 1]?.name ?? ""] : [] }));
  return {
    namespace,
    name,
    branch: "main",
    need,
    why,
    newest: cards[0]?.version ?? "",
    people: ["@web-team"],
    commit: "3fa9c12",
    bundle: `${name}-7`,
    environments: Object.fromEntries(chained.map((each) => [each.name, each])),
    verified: { [new Date().toISOString().replace(/:\d\d\.\d+Z/, "Z")]: 1 },
    changedAt: ago(HOUR),
    ...extra,
  };
}

const ROWS: readonly PipelineRow[] = [
  row(
    "shop",
    "checkout",
    "failed",
    {
      text: "staging failed: pod checkout-7d9f cannot pull 4.12.0",
      tone: "bad",
      detail: "2 of 3 attempts",
      command: "kardinal retry checkout-12 --env staging",
    },
    [
      card("dev", 0, "4.12.0", "Verified", 3 * HOUR),
      card("staging", 1, "4.11.2", "Failed", 12 * MINUTE, { incoming: "4.12.0", behind: 1 }),
      card("prod", 2, "4.11.2", "Verified", 6 * DAY, { behind: 1 }),
    ],
  ),
  row(
    "shop",
    "payments",
    "person",
    {
      text: "prod waits for a review of #812",
      tone: "you",
      detail: "asked of @shop/payments · open 41 min",
      link: { text: "#812", url: "https://git.example.com/shop/env/pulls/812" },
    },
    [
      card("dev", 0, "2.30.1", "Verified", 2 * HOUR),
      card("staging", 1, "2.30.1", "Verified", HOUR),
      card("prod", 2, "2.29.7", "WaitingForMerge", 41 * MINUTE, { behind: 1 }),
    ],
  ),
  row(
    "shop",
    "search",
    "held",
    {
      text: "prod waits for gate business-hours",
      tone: "held",
      detail: "schedule.isWeekend is true",
      until: new Date(Date.now() + 2 * DAY + 13 * HOUR).toISOString(),
      command: "kardinal explain search --env prod",
    },
    [
      card("dev", 0, "0.9.4", "Verified", 5 * HOUR),
      card("staging", 1, "0.9.4", "Verified", 4 * HOUR),
      card("prod", 2, "0.9.3", "Blocked", 2 * HOUR, { behind: 1 }),
    ],
    { branch: "branches of environments" },
  ),
  row(
    "shop",
    "catalogue",
    "moving",
    { text: "staging: landed 20 s ago, 2 of 3 pods run 1.44.0", tone: "move", detail: "step 6 of 6 · health-check" },
    [
      card("dev", 0, "1.44.0", "Verified", 8 * MINUTE),
      card("staging", 1, "1.43.2", "HealthChecking", 20_000, { incoming: "1.44.0", behind: 1 }),
      card("prod", 2, "1.43.2", "Verified", DAY, { behind: 1 }),
    ],
  ),
  row(
    "platform",
    "mailer",
    "failed",
    {
      text: "eu: Deployment mailer 1 of 3 available since 14:02",
      tone: "warn",
      detail: "was Verified · nothing moves because of it",
    },
    [
      card("eu", 0, "3.1.0", "Verified", 5 * MINUTE, { health: mark("Degraded", "Health") }),
      card("us", 1, "3.1.0", "Verified", 3 * DAY, { shard: "us", noAgentSince: ago(HOUR) }),
    ],
  ),
  row(
    "shop",
    "cart",
    "person",
    { text: "paused by @sre-oncall: incident 4711", tone: "you", command: "kardinal resume cart" },
    [card("dev", 0, "1.0.1", "Verified", DAY), card("prod", 1, "1.0.0", "Waiting", DAY, { behind: 1 })],
    { paused: "incident 4711" },
  ),
  row(
    "finance",
    "<img src=x onerror=alert(1)>",
    "rest",
    { text: "<script>alert(1)</script>", tone: "rest", link: { text: "script", url: "javascript:alert(1)" } },
    [card("dev", 0, "7.0.3", "Verified", 9 * DAY)],
  ),
  ...Array.from({ length: 993 }, (_, index) =>
    row(
      "finance",
      `ledger-${index + 1}`,
      "rest",
      { text: "At rest", tone: "rest", detail: "newest everywhere · last change 8 d ago by @index-team" },
      [
        card("dev", 0, "7.0.3", "Verified", 9 * DAY),
        card("staging", 1, "7.0.3", "Verified", 9 * DAY),
        card("prod-eu", 2, "7.0.3", "Verified", 8 * DAY),
        card("prod-us", 3, "7.0.3", "Verified", 8 * DAY),
      ],
    ),
  ),
];

const OVERVIEW: Overview = {
  rows: Object.fromEntries(ROWS.map((each) => [`${each.namespace}/${each.name}`, each])),
  notices: {
    "shard/eu-west": {
      tone: "warn",
      text: "No agent serves shard eu-west.",
      detail: "4 environments wait.",
      since: ago(HOUR),
      command: "kardinal get shards",
    },
  },
};

const OPENS = new Date(Date.now() + 2 * DAY + 13 * HOUR).toISOString();
const gate = (
  environment: string,
  namespace: string,
  name: string,
  answer: string,
  detail: string,
  opensAt?: string,
): DrawnGate => ({
  kind: "gate",
  environment,
  namespace,
  name,
  scope: namespace === "platform" ? "org" : "team",
  answer: mark(answer, "Gate"),
  detail,
  seenAt: ago(18_000),
  ...(opensAt && { opensAt }),
});
const drawn = (each: EnvironmentCard, health: string, extra: Partial<DrawnEnvironment> = {}): DrawnEnvironment => ({
  kind: "environment",
  card: each,
  health,
  ...extra,
});
const bundle = (
  number: number,
  age: number,
  author: string,
  segments: Record<string, string>,
  runsIn: string[] = [],
): BundleCard => ({
  namespace: "shop",
  name: `search-${number}`,
  pipeline: "search",
  order: number,
  versions: `0.9.${number}`,
  author,
  created: ago(age),
  phase: mark(number === 4 ? "Promoting" : "Superseded", "Bundle"),
  message: "",
  segments: Object.fromEntries(Object.entries(segments).map(([name, state]) => [name, mark(state)])),
  runsIn,
  commit: { text: "3fa9c12", url: "https://git.example.com/shop/search/commit/3fa9c12" },
  ciRun: { text: "run 1234", url: "https://ci.example.com/1234" },
});

const PIPELINE: PipelineDocument = {
  namespace: "shop",
  name: "search",
  repository: { text: "git.example.com/shop/env", url: "https://git.example.com/shop/env" },
  branch: "main",
  notices: {},
  moreBundles: 12,
  shown: "search-4",
  bundles: Object.fromEntries(
    [
      bundle(1, 9 * DAY, "@web-team", { dev: "Verified", staging: "Verified", prod: "Verified" }),
      bundle(2, 6 * DAY, "@index-team", { dev: "Verified" }),
      bundle(
        3,
        3 * DAY,
        "@core-team",
        { dev: "Verified", staging: "Verified", "load-test": "Verified", prod: "Verified" },
        ["prod"],
      ),
      bundle(
        4,
        5 * HOUR,
        "@web-team",
        { dev: "Verified", staging: "Verified", "load-test": "HealthChecking", prod: "Blocked" },
        ["dev", "staging"],
      ),
      bundle(5, 4 * MINUTE, "@index-team", { dev: "Promoting" }),
    ].map((each) => [each.name, each]),
  ),
  nodes: {
    "environment/dev": drawn(card("dev", 0, "0.9.4", "Verified", 5 * HOUR), "Flux healthy", {
      commit: { text: "3fa9c12" },
    }),
    "gate/staging/shop/soak": gate("staging", "shop", "soak", "PASS", "30m of 30m"),
    "gate/load-test/shop/soak": gate("load-test", "shop", "soak", "PASS", "30m of 30m"),
    "environment/staging": drawn(
      card("staging", 1, "0.9.4", "Verified", 4 * HOUR, { upstreams: ["dev"] }),
      "Flux healthy",
      { commit: { text: "91be07d" } },
    ),
    "environment/load-test": drawn(
      card("load-test", 2, "0.9.3", "HealthChecking", 2 * MINUTE, { upstreams: ["dev"], incoming: "0.9.4" }),
      "",
      { progress: { uses: "health-check", index: 6, of: 6, message: "4 of 6 pods" } },
    ),
    "gate/prod/shop/error-rate": gate("prod", "shop", "error-rate", "PASS", "0.2 % of < 1 %"),
    "gate/prod/platform/business-hours": gate(
      "prod",
      "platform",
      "business-hours",
      "FAIL",
      "schedule.isWeekend is true",
      OPENS,
    ),
    "environment/prod": drawn(
      card("prod", 3, "0.9.3", "Blocked", 3 * DAY, { upstreams: ["staging", "load-test"], behind: 1 }),
      "",
      { why: { text: "by load-test, business-hours", tone: "held" } },
    ),
  },
  edges: Object.fromEntries(
    (
      [
        ["environment/dev", "gate/staging/shop/soak", true, "ok"],
        ["gate/staging/shop/soak", "environment/staging", true, "ok"],
        ["environment/dev", "gate/load-test/shop/soak", true, "ok"],
        ["gate/load-test/shop/soak", "environment/load-test", true, "ok"],
        ["environment/staging", "gate/prod/shop/error-rate", true, "ok"],
        ["environment/load-test", "gate/prod/shop/error-rate", false, "rest"],
        ["environment/staging", "gate/prod/platform/business-hours", true, "ok"],
        ["environment/load-test", "gate/prod/platform/business-hours", false, "rest"],
        ["gate/prod/shop/error-rate", "environment/prod", true, "ok"],
        ["gate/prod/platform/business-hours", "environment/prod", false, "held"],
      ] as const
    ).map(([source, target, open, tone]) => [`${source}→${target}`, { source, target, open, tone }]),
  ),
};

const GATE: GateDocument = {
  namespace: "shop",
  pipeline: "search",
  bundle: "search-4",
  gate: gate("prod", "platform", "business-hours", "FAIL", "", OPENS),
  verdict: { text: "Closed.", tone: "held", until: OPENS },
  expression: "!schedule.isWeekend && schedule.hour >= 9\n  && schedule.hour < 17",
  message: "",
  values: [
    { name: "schedule.isWeekend", value: "true", needed: "must become false" },
    { name: "schedule.hour", value: "20", needed: "9 to 16" },
  ],
  history: [1, 2, 3, 4, 5].map((number) => ({
    answer: mark(number % 2 ? "FAIL" : "PASS", "Gate"),
    since: ago(number * 11 * HOUR),
    reason: number % 2 ? "schedule.isWeekend is true" : "",
  })),
  nextLook: new Date(Date.now() + 42_000).toISOString(),
  recheckSeconds: 300,
  owner: "who may change PolicyGate platform/business-hours",
  approvable: false,
  rightCommand: "kubectl auth can-i patch policygates.kardinal.io/business-hours --namespace platform",
  commands: ["kardinal explain search --env prod"],
};

const EVIDENCE = {
  environment: "staging",
  state: mark("Verified"),
  commit: { text: "91be07d", url: "https://git.example.com/c/91be07d" },
  people: [{ name: "@ann", did: "merged", at: ago(4 * HOUR) }] as const,
  gates: [gate("staging", "shop", "soak", "PASS", "30m of 30m")],
  dueAt: ago(5 * HOUR),
  startedAt: ago(4.6 * HOUR),
  proposedAt: ago(4.5 * HOUR),
  landedAt: ago(4.1 * HOUR),
  verifiedAt: ago(4 * HOUR),
  delegate: "Flux",
  metrics: { "error rate": "0.2 %" },
  health: "Kustomization shop/search is healthy",
};

const ENVIRONMENT: EnvironmentDocument = {
  namespace: "shop",
  pipeline: "search",
  bundle: "search-4",
  card: card("staging", 1, "0.9.3", "Failed", 12 * MINUTE, { incoming: "0.9.4", behind: 1 }),
  attempt: 2,
  retries: 2,
  nextTry: new Date(Date.now() + 90_000).toISOString(),
  why: {
    text: "staging failed: pod search-7d9f cannot pull 0.9.4",
    tone: "bad",
    command: "kardinal retry search-4 --env staging",
  },
  error: "image registry.example.com/search:0.9.4 not found",
  steps: Object.fromEntries(
    ["git-clone", "kustomize-set-image", "git-commit", "git-push", "open-pull-request", "health-check"].map(
      (uses, index) => [
        String(index + 1),
        {
          uses,
          state: index < 5 ? "Succeeded" : "Failed",
          message: index < 5 ? "" : "0 of 3 pods run 0.9.4",
          startedAt: ago(12 * MINUTE - index * 9000),
          finishedAt: ago(12 * MINUTE - index * 9000 - 7000),
        },
      ],
    ),
  ),
  commit: { text: "91be07d", url: "https://git.example.com/c/91be07d" },
  pullRequest: { text: "#812", url: "https://git.example.com/pulls/812" },
  diff: "--- a/environments/staging/kustomization.yaml\n+++ b/environments/staging/kustomization.yaml\n@@ -4,4 +4,4 @@\n images:\n - name: search\n-  newTag: 0.9.3\n+  newTag: 0.9.4\n",
  evidence: EVIDENCE,
  history: [3, 2, 1].map((number) => ({
    bundle: `search-${number}`,
    versions: `0.9.${number}`,
    state: mark("Verified"),
    at: ago(number * DAY),
    commit: { text: "aa12345" },
    rollback: number === 3 ? "" : `kardinal rollback search --env staging --to search-${number}`,
  })),
  links: [{ text: "Argo CD", url: "https://argocd.example.com/applications/search" }],
  commands: ["kardinal explain search --env staging", "kardinal retry search-4 --env staging"],
};

const BUNDLE: BundleDocument = {
  card: bundle(4, 5 * HOUR, "@web-team", { dev: "Verified", staging: "Verified", "load-test": "HealthChecking" }, [
    "dev",
    "staging",
  ]),
  type: "images",
  intent: "every environment",
  artifacts: {
    "registry.example.com/search": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  },
  environments: {
    dev: {
      ...EVIDENCE,
      environment: "dev",
      dueAt: ago(5 * HOUR),
      startedAt: ago(5 * HOUR),
      landedAt: ago(4.95 * HOUR),
      verifiedAt: ago(4.9 * HOUR),
    },
    staging: EVIDENCE,
    "load-test": { ...EVIDENCE, environment: "load-test", state: mark("HealthChecking"), landedAt: ago(HOUR) },
  },
  ahead: ["prod waits for load-test, and for gate business-hours"],
  conditions: [
    {
      type: "Ready",
      status: "False",
      reason: "Promoting",
      message: "2 of 4 environments are Verified",
      since: ago(5 * HOUR),
    },
  ],
};

const GRAPH: GraphDocument = {
  namespace: "shop",
  name: "search-4",
  conditions: {
    Accepted: { type: "Accepted", status: "True", reason: "Compiled", message: "6 nodes", since: ago(5 * HOUR) },
    Ready: {
      type: "Ready",
      status: "False",
      reason: "NodesNotReady",
      message: "3 of 6 nodes are ready",
      since: ago(5 * HOUR),
    },
  },
  nodes: {
    dev: {
      id: "dev",
      kind: "PromotionStep",
      name: "search-4-dev",
      ready: "True",
      message: "",
      child: "Verified",
      upstreams: [],
    },
    prod: {
      id: "prod",
      kind: "PromotionStep",
      name: "",
      ready: "Unknown",
      message: "waits for gate",
      child: "",
      upstreams: ["dev", "business-hours"],
    },
  },
};

const VIEWER: Viewer = {
  user: "ann@example.com",
  groups: ["sre", "system:authenticated"],
  auth: "kubeconfig",
  mayAct: true,
  readsAsViewer: true,
  namespaces: ["finance", "platform", "shop"],
  version: "0.1.0",
};
const PLAN: ActionAnswer = {
  lines: ["search-4 goes to prod before all Bundles that were created until now."],
  command: "kardinal promote search --env prod -n shop",
  plan: [
    {
      environment: "prod",
      sentence: "changes 1 file",
      files: ["environments/prod/kustomization.yaml"],
      diff: ENVIRONMENT.diff,
    },
  ],
};

/** Return the document of a path, or undefined. */
export function documentOf(path: string, method: string): unknown {
  if (method === "POST") return path === "session" ? { viewer: VIEWER, secret: "fixture" } : PLAN;
  if (path === "viewer") return VIEWER;
  if (path === "overview") return OVERVIEW;
  if (path === "bundles") return { items: Object.values(PIPELINE.bundles).reverse() };
  if (path === "graphs")
    return {
      items: [
        {
          namespace: "shop",
          name: "search-4",
          accepted: "True",
          ready: "False",
          message: "3 of 6 nodes are ready",
          created: ago(5 * HOUR),
        },
      ],
    };
  if (path === "events")
    return {
      items: [
        {
          type: "Warning",
          reason: "Failed",
          message: "cannot pull the image",
          about: "PromotionStep search-4-staging",
          count: 3,
          at: ago(MINUTE),
        },
      ],
    };
  if (path.startsWith("yaml/"))
    return 'apiVersion: kardinal.io/v1alpha1\nkind: Pipeline\nmetadata:\n  name: search # the name\nspec:\n  paused: false\n  environments:\n  - name: "dev"\n';
  if (path.startsWith("graphs/")) return GRAPH;
  if (path.startsWith("bundles/")) return BUNDLE;
  if (path.includes("/gates/")) return GATE;
  if (path.includes("/environments/")) return ENVIRONMENT;
  return path.startsWith("pipelines/") ? PIPELINE : undefined;
}
