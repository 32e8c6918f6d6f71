import "@/styles.css";
import "@/api/session"; // first: it takes the key out of the address before the router reads it
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "@/api/queries";
import { startLive } from "@/live";
import { router } from "@/router";
import { applyTheme, useShell } from "@/parts/shellState";

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => applyTheme(useShell.getState().theme));

/** Apply the style sheet that the page has fetched, and wait for it: nothing is drawn without its style. */
async function applyStyles(): Promise<void> {
  const fetched = document.querySelector<HTMLLinkElement>('link[rel="preload"][as="style"]');
  if (!fetched) return; // the development server applies styles itself
  const sheet = document.createElement("link");
  const isDone = new Promise((resolve) => (sheet.onload = sheet.onerror = resolve));
  Object.assign(sheet, { rel: "stylesheet", crossOrigin: fetched.crossOrigin, href: fetched.href });
  document.head.append(sheet);
  await isDone;
}

startLive();
await applyStyles();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
