import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const server = process.env.AGIRAPH_URL ?? "http://127.0.0.1:8717";

/** Write the names of all code files to chunks.json. The page puts them into the browser's cache when it is idle; see `src/live/chunks.ts`. */
const listChunks = {
  name: "list-chunks",
  generateBundle(_options: unknown, bundle: Record<string, unknown>) {
    const files = Object.keys(bundle).filter((name) => /^assets\/.*\.(js|css)$/.test(name)).sort();
    (this as unknown as { emitFile: (file: object) => void }).emitFile({ type: "asset", fileName: "chunks.json", source: JSON.stringify(files.map((name) => `/${name}`)) });
  },
};

export default defineConfig({
  plugins: [react(), tailwind(), listChunks],
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
  },
  server: {
    // The server refuses requests whose Host or Origin is another host, so the proxy sends the server's own.
    proxy: {
      "/api": { target: server, ws: true, changeOrigin: true, headers: { origin: server } },
      "/signin": { target: server, changeOrigin: true },
    },
  },
  test: { environment: "node", include: ["src/**/*.test.{ts,tsx}"] },
});
