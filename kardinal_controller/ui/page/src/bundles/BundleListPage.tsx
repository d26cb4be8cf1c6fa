import { useState } from "react";
import { Link } from "wouter";

import { usePages } from "../api/pages";
import type { BundleCard } from "../api/types";
import { OutLink } from "../parts/OutLink";
import { Empty, Failure } from "../parts/Says";
import { StateIcon } from "../parts/StateIcon";
import { Age } from "../parts/Time";
import { useFilters } from "../shell/search";
import { bundlePath, pipelinePath } from "../words/routes";

/** The Bundles of all Pipelines, newest first. */
export default function BundleListPage() {
  const [filters] = useFilters();
  const [pipeline, setPipeline] = useState("");
  const bundles = usePages<BundleCard>("bundles", { namespace: filters.namespace, pipeline });
  return (
    <main className="main">
      <div className="heading">
        <h1>Bundles</h1>
        <span className="muted">newest first</span>
        <span className="space" />
        {pipeline && (
          <button type="button" className="button" onClick={() => setPipeline("")}>
            of {pipeline} ×
          </button>
        )}
      </div>
      {bundles.error && <Failure error={bundles.error} />}
      {bundles.data?.length === 0 && (
        <Empty
          text="There is no Bundle yet that you may list."
          command="kardinal create bundle PIPELINE --image REPOSITORY:TAG"
        />
      )}
      {!!bundles.data?.length && (
        <div className="panel scroll">
          <table className="lines">
            <thead>
              <tr>
                <th scope="col">Bundle</th>
                <th scope="col">Pipeline</th>
                <th scope="col">State</th>
                <th scope="col">Runs in</th>
                <th scope="col">Commit</th>
                <th scope="col">Author</th>
                <th scope="col">Age</th>
              </tr>
            </thead>
            <tbody>
              {bundles.data.map((card) => (
                <tr key={`${card.namespace}/${card.name}`}>
                  <td>
                    <Link data-stop className="version" to={bundlePath(card.namespace, card.name)}>
                      {card.versions}
                    </Link>
                    <div className="small muted">{card.name}</div>
                  </td>
                  <td data-label="Pipeline">
                    <Link to={pipelinePath(card.namespace, card.pipeline)}>{card.pipeline}</Link>
                    <div className="small muted">
                      {card.namespace}{" "}
                      {!pipeline && (
                        <button type="button" className="as-link small" onClick={() => setPipeline(card.pipeline)}>
                          only these
                        </button>
                      )}
                    </div>
                  </td>
                  <td data-label="State">
                    <StateIcon state={card.phase} />
                    {card.message && <div className="small muted clip">{card.message}</div>}
                  </td>
                  <td data-label="Runs in">
                    {card.runsIn.map((name) => (
                      <span key={name} className="chip">
                        {name}
                      </span>
                    ))}
                  </td>
                  <td data-label="Commit">
                    {card.commit && (
                      <code>
                        <OutLink link={card.commit} />
                      </code>
                    )}
                  </td>
                  <td data-label="Author">{card.author}</td>
                  <td data-label="Age">
                    <Age at={card.created} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {bundles.hasNextPage && (
        <button
          type="button"
          className="button"
          disabled={bundles.isFetchingNextPage}
          onClick={() => void bundles.fetchNextPage()}
        >
          Show older
        </button>
      )}
    </main>
  );
}
