// Generated from kardinal_controller/ui/model/ by `make docs`. Do not edit.
// A field without a value is absent, never null. Times are ISO 8601 in UTC.

export type Tone = "ok" | "move" | "you" | "held" | "bad" | "warn" | "rest";

export type Need = "person" | "failed" | "held" | "moving" | "rest";

/** The result of an action, or with `?dry-run=true` the result that it would have. */
export interface ActionAnswer {
  readonly lines: ReadonlyArray<string>;
  readonly command: string;
  readonly plan?: ReadonlyArray<PlannedChange>;
}

/** The body of `POST actions/{action}`; an action reads the fields that its command has as arguments. */
export interface ActionRequest {
  readonly namespace: string;
  readonly pipeline: string;
  readonly bundle?: string;
  readonly environment?: string;
  readonly gate?: string;
  readonly reason?: string;
  readonly emergency?: boolean;
  readonly hold?: boolean;
  readonly pullRequest?: number;
}

/** A person who approved or merged a pull request. */
export interface Approver {
  readonly name: string;
  readonly did: "approved" | "merged";
  readonly at?: string;
}

/** One Bundle on the timeline, oldest first by `order`. */
export interface BundleCard {
  readonly namespace: string;
  readonly name: string;
  readonly pipeline: string;
  readonly order: number;
  readonly versions: string;
  readonly author: string;
  readonly commit?: Link;
  readonly ciRun?: Link;
  readonly created: string;
  readonly phase: StateMark;
  readonly message: string;
  readonly segments: Readonly<Record<string, StateMark>>;
  readonly runsIn: ReadonlyArray<string>;
}

/** The page of a Bundle. */
export interface BundleDocument {
  readonly card: BundleCard;
  readonly type: string;
  readonly intent: string;
  readonly artifacts: Readonly<Record<string, string>>;
  readonly environments: Readonly<Record<string, EnvironmentEvidence>>;
  readonly ahead: ReadonlyArray<string>;
  readonly conditions: ReadonlyArray<ConditionLine>;
}

/** A page of Bundles, newest first; `next` is the parameter `after` of the following page. */
export interface BundleList {
  readonly items: ReadonlyArray<BundleCard>;
  readonly next?: string;
}

/** A condition of an object. */
export interface ConditionLine {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly since?: string;
}

/** An environment in the DAG. */
export interface DrawnEnvironment {
  readonly kind: "environment";
  readonly card: EnvironmentCard;
  readonly why?: Sentence;
  readonly progress?: StepPosition;
  readonly commit?: Link;
  readonly health: string;
}

/** A gate in the DAG; it stands before one environment. */
export interface DrawnGate {
  readonly kind: "gate";
  readonly environment: string;
  readonly namespace: string;
  readonly name: string;
  readonly scope: "org" | "team";
  readonly answer: StateMark;
  readonly detail: string;
  readonly seenAt?: string;
  readonly opensAt?: string;
  readonly soak?: GateSoak;
}

/** A dependency: `open` when what it leads from lets the Bundle go on; `tone` is that of what closes it. */
export interface Edge {
  readonly source: string;
  readonly target: string;
  readonly open: boolean;
  readonly tone: Tone;
}

/** One environment of a Pipeline, for the Bundle that is on its way. */
export interface EnvironmentCard {
  readonly name: string;
  readonly order: number;
  readonly upstreams: ReadonlyArray<string>;
  readonly state: StateMark;
  readonly version: string;
  readonly incoming?: string;
  readonly health?: StateMark;
  readonly behind: number;
  readonly since?: string;
  readonly shard?: string;
  readonly noAgentSince?: string;
  readonly pullRequest?: Link;
}

/** The drawer of an environment. */
export interface EnvironmentDocument {
  readonly namespace: string;
  readonly pipeline: string;
  readonly bundle?: string;
  readonly card: EnvironmentCard;
  readonly why?: Sentence;
  readonly steps: Readonly<Record<string, StepLine>>;
  readonly attempt: number;
  readonly retries: number;
  readonly nextTry?: string;
  readonly error?: string;
  readonly commit?: Link;
  readonly pullRequest?: Link;
  readonly diff: string;
  readonly evidence?: EnvironmentEvidence;
  readonly history: ReadonlyArray<PastPromotion>;
  readonly links: ReadonlyArray<Link>;
  readonly commands: ReadonlyArray<string>;
}

/** The evidence of one Bundle in one environment, from `status.environments` of the Bundle. */
export interface EnvironmentEvidence {
  readonly environment: string;
  readonly state: StateMark;
  readonly commit?: Link;
  readonly pullRequest?: Link;
  readonly people: ReadonlyArray<Approver>;
  readonly gates: ReadonlyArray<DrawnGate>;
  readonly dueAt?: string;
  readonly startedAt?: string;
  readonly proposedAt?: string;
  readonly landedAt?: string;
  readonly verifiedAt?: string;
  readonly delegate: string;
  readonly metrics: Readonly<Record<string, string>>;
  readonly health: string;
}

/** An Event about an object. */
export interface EventLine {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly about: string;
  readonly count: number;
  readonly at?: string;
}

/** The newest Events about the objects of a Bundle, newest first, at most 200. */
export interface EventList {
  readonly items: ReadonlyArray<EventLine>;
}

/** An answer that a gate gave, until the next one. */
export interface GateAnswer {
  readonly answer: StateMark;
  readonly since: string;
  readonly reason: string;
}

/** The drawer of a gate before an environment. */
export interface GateDocument {
  readonly namespace: string;
  readonly pipeline: string;
  readonly bundle: string;
  readonly gate: DrawnGate;
  readonly verdict: Sentence;
  readonly expression: string;
  readonly message: string;
  readonly values: ReadonlyArray<GateValue>;
  readonly history: ReadonlyArray<GateAnswer>;
  readonly nextLook?: string;
  readonly recheckSeconds?: number;
  readonly owner: string;
  readonly approvable: boolean;
  readonly rightCommand: string;
  readonly commands: ReadonlyArray<string>;
}

/** The soak of the Bundle before a gate, as the gate counts it: the shortest healthy time in what is before it. */
export interface GateSoak {
  readonly since?: string;
  readonly seconds?: number;
  readonly unknown?: string;
}

/** A value that the expression read: `{"name": "schedule.hour", "value": "20", "needed": "must be below 17"}`. */
export interface GateValue {
  readonly name: string;
  readonly value: string;
  readonly needed?: string;
}

/** The page of a Graph. */
export interface GraphDocument {
  readonly namespace: string;
  readonly name: string;
  readonly conditions: Readonly<Record<string, ConditionLine>>;
  readonly nodes: Readonly<Record<string, GraphNodeLine>>;
}

/** A page of Graphs, sorted by namespace and name; `next` is the parameter `after` of the following page. */
export interface GraphList {
  readonly items: ReadonlyArray<GraphRow>;
  readonly next?: string;
}

/** A node of a Graph beside the state of its child. */
export interface GraphNodeLine {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly ready: string;
  readonly message: string;
  readonly child: string;
  readonly upstreams: ReadonlyArray<string>;
}

/** One Graph in a list. */
export interface GraphRow {
  readonly namespace: string;
  readonly name: string;
  readonly accepted: string;
  readonly ready: string;
  readonly message: string;
  readonly created?: string;
}

/** A text that may lead somewhere; `url` has the scheme http or https, or is absent. */
export interface Link {
  readonly text: string;
  readonly url?: string;
}

/** The body of `POST session`: a bearer token, or the one-time code of the link that `kardinal ui` prints. */
export interface LogIn {
  readonly token?: string;
  readonly code?: string;
}

/** The answer to a log in. */
export interface LoggedIn {
  readonly viewer: Viewer;
  readonly secret?: string;
}

/** All Pipelines that the viewer may list; keys of rows are `namespace/name`. */
export interface Overview {
  readonly rows: Readonly<Record<string, PipelineRow>>;
  readonly notices: Readonly<Record<string, PageNotice>>;
}

/** The answer to a failed request: `{"message": "no Pipeline x in namespace shop", "remedy": "There are: y"}`. */
export interface PageError {
  readonly message: string;
  readonly remedy: string;
  readonly auth?: "token" | "proxy" | "kubeconfig";
  readonly command?: string;
}

/** A line above everything else: a shard without an agent, a pause, a Pipeline that is not Ready. */
export interface PageNotice {
  readonly tone: Tone;
  readonly text: string;
  readonly detail?: string;
  readonly command?: string;
  readonly since?: string;
}

/** A promotion into an environment that was Verified, or failed. */
export interface PastPromotion {
  readonly bundle: string;
  readonly versions: string;
  readonly state: StateMark;
  readonly at?: string;
  readonly commit?: Link;
  readonly rollback: string;
}

/**
 * One Pipeline with its timeline, and the DAG of the Bundle that is selected.
 *
 * Keys of nodes are `environment/prod` and `gate/prod/platform/business-hours`, those of edges `source→target`.
 */
export interface PipelineDocument {
  readonly namespace: string;
  readonly name: string;
  readonly repository: Link;
  readonly branch: string;
  readonly paused?: string;
  readonly notices: Readonly<Record<string, PageNotice>>;
  readonly bundles: Readonly<Record<string, BundleCard>>;
  readonly moreBundles: number;
  readonly shown?: string;
  readonly nodes: Readonly<Record<string, DrawnEnvironment | DrawnGate>>;
  readonly edges: Readonly<Record<string, Edge>>;
}

/** A page of rows, sorted by namespace and name; `next` is the parameter `after` of the following page. */
export interface PipelineList {
  readonly items: ReadonlyArray<PipelineRow>;
  readonly next?: string;
}

/** One Pipeline on the overview. */
export interface PipelineRow {
  readonly namespace: string;
  readonly name: string;
  readonly branch: string;
  readonly need: Need;
  readonly why: Sentence;
  readonly paused?: string;
  readonly bundle?: string;
  readonly newest: string;
  readonly people: ReadonlyArray<string>;
  readonly commit: string;
  readonly environments: Readonly<Record<string, EnvironmentCard>>;
  readonly verified: Readonly<Record<string, number>>;
  readonly changedAt?: string;
}

/** The change that an action would make in one environment, as `kardinal plan` shows it. */
export interface PlannedChange {
  readonly environment: string;
  readonly sentence: string;
  readonly files: ReadonlyArray<string>;
  readonly diff: string;
  readonly pullRequest?: string;
  readonly note?: string;
  readonly error?: string;
}

/** The answer to "why is it not further?", as `kardinal status` and `kardinal explain` give it. */
export interface Sentence {
  readonly text: string;
  readonly tone: Tone;
  readonly detail?: string;
  readonly command?: string;
  readonly link?: Link;
  readonly until?: string;
}

/** A state of `docs/states.md`: `{"kind": "PromotionStep", "name": "WaitingForMerge", "tone": "you", …}`. */
export interface StateMark {
  readonly kind: string;
  readonly name: string;
  readonly tone: Tone;
  readonly meaning: string;
}

/** One step of the sequence of an environment. */
export interface StepLine {
  readonly uses: string;
  readonly state: "Pending" | "Running" | "Succeeded" | "Failed" | "Skipped";
  readonly message: string;
  readonly startedAt?: string;
  readonly finishedAt?: string;
}

/** The step of the sequence that is executed: `{"uses": "health-check", "index": 6, "of": 6, …}`; counts from 1. */
export interface StepPosition {
  readonly uses: string;
  readonly index: number;
  readonly of: number;
  readonly message: string;
}

/** The data of the last event of a stream, `end`; the page connects again if `again` is true. */
export interface StreamEnd {
  readonly reason: string;
  readonly again: boolean;
}

/** The person who looks, and what the page lets them do. */
export interface Viewer {
  readonly user: string;
  readonly groups: ReadonlyArray<string>;
  readonly auth: "token" | "proxy" | "kubeconfig";
  readonly mayAct: boolean;
  readonly readsAsViewer: boolean;
  readonly namespaces: ReadonlyArray<string>;
  readonly version: string;
}
