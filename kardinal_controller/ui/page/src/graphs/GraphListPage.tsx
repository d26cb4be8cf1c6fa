import { Link } from "wouter";

import { usePages } from "../api/pages";
import type { GraphRow } from "../api/types";
import { Truth } from "../parts/Conditions";
import { Empty, Failure } from "../parts/Says";
import { Age } from "../parts/Time";
import { useFilters } from "../shell/search";
import { graphPath } from "../words/routes";

/** All Graphs. */
export default function GraphListPage() {
  const [filters] = useFilters();
  const graphs = usePages<GraphRow>("graphs", { namespace: filters.namespace });
  return (
    <main className="main">
      <div className="heading">
        <h1>Graphs</h1>
        <span className="muted">what each Bundle was translated to, and Graphs of others</span>
      </div>
      {graphs.error && <Failure error={graphs.error} />}
      {graphs.data?.length === 0 && (
        <Empty
          text="There is no Graph yet that you may list; each Bundle gets one."
          command="kardinal create bundle PIPELINE --image REPOSITORY:TAG"
        />
      )}
      {!!graphs.data?.length && (
        <div className="panel scroll">
          <table className="lines">
            <thead>
              <tr>
                <th scope="col">Graph</th>
                <th scope="col">Accepted</th>
                <th scope="col">Ready</th>
                <th scope="col">Why</th>
                <th scope="col">Age</th>
              </tr>
            </thead>
            <tbody>
              {graphs.data.map((graph) => (
                <tr key={`${graph.namespace}/${graph.name}`}>
                  <td>
                    <Link data-stop to={graphPath(graph.namespace, graph.name)}>
                      {graph.name}
                    </Link>
                    <div className="small muted">{graph.namespace}</div>
                  </td>
                  <td data-label="Accepted">
                    <Truth value={graph.accepted} label="Accepted" />
                  </td>
                  <td data-label="Ready">
                    <Truth value={graph.ready} label="Ready" />
                  </td>
                  <td data-label="Why" className="small muted">
                    {graph.message}
                  </td>
                  <td data-label="Age">
                    <Age at={graph.created} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {graphs.hasNextPage && (
        <button
          type="button"
          className="button"
          disabled={graphs.isFetchingNextPage}
          onClick={() => void graphs.fetchNextPage()}
        >
          Show more
        </button>
      )}
    </main>
  );
}
