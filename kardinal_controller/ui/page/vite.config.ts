import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

import { fixtureApi } from "./dev/server.ts";

// The addresses in the built page are relative, because the server may serve it below any path.
export default defineConfig(({ command, mode }) => ({
  base: command === "serve" ? "/ui/" : "./",
  plugins: [react(), ...(mode === "fixture" ? [fixtureApi()] : [])],
  server: { proxy: { "/api": "http://127.0.0.1:8082" } },
  worker: { format: "es" },
  build: {
    outDir: "building",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's policy of content refuses data: URLs
    modulePreload: { polyfill: false },
    manifest: "manifest.json",
    chunkSizeWarningLimit: 1000, // tools/finish.mjs has the limit
  },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
}));
