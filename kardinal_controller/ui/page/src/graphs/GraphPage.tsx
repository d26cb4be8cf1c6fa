import "../styles/bundle.css";

import { Link } from "wouter";

import { useReported } from "../api/connection";
import type { GraphDocument } from "../api/types";
import { useStream } from "../api/use";
import { Conditions, Truth } from "../parts/Conditions";
import { AbsentPage, Failure } from "../parts/Says";
import { endpoint, graphPath, yamlPath } from "../words/routes";

const WITH_YAML = new Set(["pipeline", "bundle", "graph", "promotionstep", "policygate"]);

/** One Graph: its conditions, and each node's readiness beside the state of its child. */
export default function GraphPage({ namespace, name }: { namespace: string; name: string }) {
  const state = useStream<GraphDocument>(`stream/${endpoint(graphPath(namespace, name))}`);
  useReported(state);
  const { document } = state;
  if (!document) return <AbsentPage title={name} error={state.error} />;
  return (
    <main className={`main ${state.live ? "" : "stale"}`}>
      <div className="heading">
        <h1 className="break">{document.name}</h1>
        <span className="muted">Graph · {document.namespace}</span>
        <span className="space" />
        <Link className="button" to={yamlPath("graph", namespace, name)}>
          YAML
        </Link>
      </div>
      {state.error && state.error.status !== 401 && <Failure error={state.error} />}
      <section className="panel pad">
        <h2>Conditions</h2>
        <Conditions conditions={Object.values(document.conditions)} />
      </section>
      <div className="panel scroll">
        <table className="lines">
          <thead>
            <tr>
              <th scope="col">Node</th>
              <th scope="col">Child</th>
              <th scope="col">After</th>
              <th scope="col">Readiness of the node</th>
              <th scope="col">State of the child</th>
            </tr>
          </thead>
          <tbody>
            {Object.values(document.nodes).map((node) => (
              <tr key={node.id}>
                <td className="strong">{node.id}</td>
                <td data-label="Child">
                  {WITH_YAML.has(node.kind.toLowerCase()) && node.name ? (
                    <Link data-stop to={yamlPath(node.kind.toLowerCase(), namespace, node.name)}>
                      {node.name}
                    </Link>
                  ) : (
                    node.name
                  )}
                  <div className="small muted">{node.kind}</div>
                </td>
                <td data-label="After" className="small">
                  {node.upstreams.join(", ")}
                </td>
                <td data-label="Readiness">
                  <Truth value={node.ready} label="Ready" />
                  {node.message !== "Ready" && <div className="small muted">{node.message}</div>}
                </td>
                <td data-label="State">
                  {node.child || <span className="muted">{node.ready === "True" ? "—" : "not there yet"}</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </main>
  );
}
