import "./styles/tokens.css";
import "./styles/base.css";

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { Tooltip } from "radix-ui";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";

import { routerBase } from "./api/place";
import { RequestError } from "./api/session";
import { App } from "./shell/App";
import { applyTheme } from "./shell/theme";

applyTheme();
const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (count, error) =>
        count < 3 && !(error instanceof RequestError && error.status >= 400 && error.status < 500),
      staleTime: 10_000,
    },
  },
});
const root = document.getElementById("page");
if (root) {
  createRoot(root).render(
    <QueryClientProvider client={queries}>
      <Tooltip.Provider delayDuration={250}>
        <Router base={routerBase()}>
          <App />
        </Router>
      </Tooltip.Provider>
    </QueryClientProvider>,
  );
}
