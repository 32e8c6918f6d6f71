import "@/styles.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "@/api/queries";
import { startLive } from "@/live";
import { router } from "@/router";
import { applyTheme, useShell } from "@/shell/state";

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => applyTheme(useShell.getState().theme));

startLive();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
