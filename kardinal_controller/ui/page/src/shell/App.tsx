import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect } from "react";
import { Redirect, Route, Switch } from "wouter";

import { useConnection } from "../api/connection";
import { useViewerQuery, ViewerContext } from "../api/viewer";
import { OverviewPage } from "../overview/OverviewPage";
import { Empty, Failure } from "../parts/Says";
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
  const ended = useConnection()?.ended ?? false;
  const keys = useKeys();
  useEffect(() => {
    if (ended) void queries.resetQueries({ queryKey: ["viewer"] });
  }, [ended, queries]);

  if (viewer.error?.status === 401) return <LogInPage refusal={viewer.error} />;
  if (viewer.error)
    return (
      <main className="main">
        <Failure error={viewer.error} />
      </main>
    );
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
              <Empty text="There is no such page." command="kardinal get pipelines" />
            </main>
          </Route>
        </Switch>
      </Suspense>
      <KeyHelp open={keys.help} close={keys.closeHelp} />
    </ViewerContext>
  );
}
