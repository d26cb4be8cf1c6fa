import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { Redirect, Route, Switch } from "wouter";

import { useConnection } from "../api/connection";
import { useViewerQuery, ViewerContext } from "../api/viewer";
import { OverviewPage } from "../overview/OverviewPage";
import { AbsentPage, Empty } from "../parts/Says";
import { KeyHelp, useKeys } from "./keys";
import { LogInPage } from "./LogInPage";
import { TopBar } from "./TopBar";

const PipelinePage = lazy(() => import("../pipeline/PipelinePage"));
const BundleListPage = lazy(() => import("../bundles/BundleListPage"));
const BundlePage = lazy(() => import("../bundles/BundlePage"));
const GraphListPage = lazy(() => import("../graphs/GraphListPage"));
const GraphPage = lazy(() => import("../graphs/GraphPage"));
const YamlPage = lazy(() => import("./YamlPage"));

/** The page: log in, or the bar with what is open below it. */
export function App() {
  const viewer = useViewerQuery();
  const queries = useQueryClient();
  const connection = useConnection();
  const ended = connection?.ended ?? false;
  const lost = connection?.lostSince !== undefined;
  const keys = useKeys();
  useEffect(() => {
    if (ended) void queries.resetQueries({ queryKey: ["viewer"] });
  }, [ended, queries]);
  useEffect(() => {
    if (!lost) return undefined;
    // Once it is back, the viewer may have other rights, and the server another version.
    return () => void queries.invalidateQueries({ queryKey: ["viewer"] });
  }, [lost, queries]);

  if (viewer.error?.status === 401) return <LogInPage refusal={viewer.error} />;
  if (viewer.error) return <AbsentPage title="kardinal" error={viewer.error} />;
  if (!viewer.data) return null;
  return (
    <ViewerContext value={viewer.data}>
      <TopBar />
      <Suspense fallback={null}>
        <Switch>
          <Route path="/">
            <OverviewPage />
          </Route>
          <Route path="/pipelines">
            <Redirect to="/" replace />
          </Route>
          <Route path="/pipelines/:namespace/:name/*?">
            {(where) => (
              <PipelinePage key={`${where.namespace}/${where.name}`} namespace={where.namespace} name={where.name} />
            )}
          </Route>
          <Route path="/bundles">
            <BundleListPage />
          </Route>
          <Route path="/bundles/:namespace/:name">{(where) => <BundlePage {...where} />}</Route>
          <Route path="/graphs">
            <GraphListPage />
          </Route>
          <Route path="/graphs/:namespace/:name">{(where) => <GraphPage {...where} />}</Route>
          <Route path="/yaml/:kind/:namespace/:name">{(where) => <YamlPage {...where} />}</Route>
          <Route>
            <main className="main">
              <h1 className="unseen">kardinal</h1>
              <Empty text="There is no such page." command="kardinal get pipelines" />
            </main>
          </Route>
        </Switch>
      </Suspense>
      <KeyHelp open={keys.help} close={keys.closeHelp} />
    </ViewerContext>
  );
}
