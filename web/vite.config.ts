import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env.AGIRAPH_URL ?? "http://127.0.0.1:8717";

/** Write the names of all code files to chunks.json. The page puts them into the browser's cache when it is idle; see `src/live/chunks.ts`. */
const listChunks = {
  name: "list-chunks",
  enforce: "post" as const,
  generateBundle: {
    // Vite takes an entry that only imports others out of the bundle, in this hook.
    order: "post" as const,
    handler(_options: unknown, bundle: Record<string, unknown>) {
      const files = Object.keys(bundle).filter((name) => /^assets\/.*\.(js|css)$/.test(name)).sort();
      (this as unknown as { emitFile: (file: object) => void }).emitFile({ type: "asset", fileName: "chunks.json", source: JSON.stringify(files.map((name) => `/${name}`)) });
    },
  },
};

/**
 * Fetch the style sheet without applying it. A style sheet in the head keeps browsers from drawing the frame of the page
 * before it has arrived. `src/main.tsx` applies it before anything else is drawn.
 */
const drawFrameFirst = {
  name: "draw-frame-first",
  transformIndexHtml: { order: "post" as const, handler: (html: string) => html.replace(/<link rel="stylesheet"/g, '<link rel="preload" as="style"') },
};

/** Code that the first screen needs, in two files: on a slow line each file of its own costs a round trip. */
const FIRST_LIBRARIES = /node_modules\/(react|react-dom|scheduler|@tanstack\/(react-router|router-core|history|store|react-store|react-query|query-core)|zustand|use-sync-external-store|clsx|class-variance-authority|openapi-fetch)\//;
export default defineConfig({
  plugins: [react(), tailwind(), listChunks, drawFrameFirst],
  resolve: {
    alias: {
      "@": fileURLToPath(new URL("./src", import.meta.url)),
      // The package's browser build decodes entities with innerHTML, which the page's Content-Security-Policy (trusted types) refuses. Use the build without DOM.
      "decode-named-character-reference": fileURLToPath(new URL("./node_modules/decode-named-character-reference/index.js", import.meta.url)),
    },
  },
  build: {
    outDir: process.env.AGIRAPH_WEB_OUT ?? "../src/agiraph/web_dist",
    emptyOutDir: true,
    target: "es2022",
    // No data: URLs: the Content-Security-Policy allows fonts and scripts from the server only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "libraries", test: FIRST_LIBRARIES },
            // All other code that the first screen needs, with its icons.
            { name: "frame", tags: ["$initial"] },
            // One file: each icon by itself would be a request whose headers are larger than the icon.
            { name: "icons", test: /node_modules\/lucide-react/ },
          ],
        },
      },
    },
  },
  server: {
    // The server refuses requests whose Host or Origin is another host, so the proxy sends the server's own.
    proxy: {
      "/api": { target: server, ws: true, changeOrigin: true, headers: { origin: server } },
      "/signin": { target: server, changeOrigin: true },
      "/shared": { target: server, changeOrigin: true },
    },
  },
  test: {
    environment: "node",
    include: ["src/**/*.test.{ts,tsx}"],
    // One process for all files: to load React and jsdom again for each file took three quarters of the time. So a file
    // must not leave behind what another could see.
    isolate: false,
    maxWorkers: 1,
    setupFiles: "vitest.setup.ts",
    // Long: the checks run beside the tests, on a busy machine, and some of these load a library.
    testTimeout: 30_000,
  },
});
