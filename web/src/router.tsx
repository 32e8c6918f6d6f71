/** Router: the URL of every page and screen. */
import { useQuery } from "@tanstack/react-query";
import { createRootRoute, createRoute, createRouter, Navigate, type AnyRoute } from "@tanstack/react-router";
import { ApiError, errorMessage } from "@/api/client";
import { teamQuery } from "@/api/queries";
import { Shell } from "@/shell/Shell";
import { NotFound, ErrorPage } from "@/parts/statusPages";
import { AgentPage } from "@/views/conversation/AgentPage";
import { lazyChunk } from "@/live/chunks";
import { ScreenPage, TeamPage } from "@/shell/ScreenPage";
import { ErrorPanel, Loading } from "@/ui";
import { SCREENS } from "@/views";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound, errorComponent: ErrorPage });

const home = createRoute({ getParentRoute: () => root, path: "/", component: lazyChunk(() => import("@/views/home/Home")) });
const InboxPage = lazyChunk(() => import("@/views/inbox/InboxPage").then((loaded) => ({ default: loaded.InboxPage })));
const inbox = createRoute({ getParentRoute: () => root, path: "/inbox", component: InboxPage });
const inboxItem = createRoute({ getParentRoute: () => root, path: "/inbox/$item", component: InboxPage });

const teamPages = createRoute({ getParentRoute: () => root, path: "/t/$team", component: TeamPage });
interface AgentSearch {
  /** The id of a message to scroll to and highlight. */
  at?: string;
}
const agent = createRoute({
  getParentRoute: () => teamPages,
  path: "/a/$agent",
  validateSearch: (search: Record<string, unknown>): AgentSearch => (typeof search.at === "string" ? { at: search.at } : {}),
  component: () => {
    const { team, agent: id } = agent.useParams();
    return <AgentPage key={id} teamId={team} agentId={id} at={agent.useSearch().at} />;
  },
});
/** The page of a team is the conversation with its coordinator. */
const team = createRoute({
  getParentRoute: () => teamPages,
  path: "/",
  component: function TeamHome() {
    const found = useQuery(teamQuery(team.useParams().team));
    if (found.isPending) return <Loading label="Loading the team" />;
    if (found.error instanceof ApiError && found.error.status === 404) return <NotFound />;
    if (!found.data) return <ErrorPanel title="The team could not be loaded" detail={errorMessage(found.error)} onRetry={() => void found.refetch()} />;
    if (!found.data.coordinator_id) return <NotFound />;
    return <Navigate to="/t/$team/a/$agent" params={{ team: found.data.id, agent: found.data.coordinator_id }} replace />;
  },
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: lazyChunk(() => import("@/views/home/Settings").then((loaded) => ({ default: loaded.Settings }))),
});
interface ModelsSearch {
  /** Whether the form for a key or a local model is open. */
  setup?: boolean;
  /** The id of a team of the demo, which may use the new model. */
  team?: string;
}
const models = createRoute({
  getParentRoute: () => root,
  path: "/models",
  validateSearch: (search: Record<string, unknown>): ModelsSearch => ({ ...(search.setup ? { setup: true } : {}), ...(typeof search.team === "string" ? { team: search.team } : {}) }),
  component: lazyChunk(() => import("@/views/models/ModelsPage").then((loaded) => ({ default: loaded.ModelsPage }))),
});
const archive = createRoute({ getParentRoute: () => root, path: "/archive", component: lazyChunk(() => import("@/views/home/ArchivePage")) });
const operations = createRoute({
  getParentRoute: () => root,
  path: "/operations",
  component: lazyChunk(() => import("@/views/operations/OperationsPage").then((loaded) => ({ default: loaded.OperationsPage }))),
});
const setup = createRoute({ getParentRoute: () => root, path: "/setup", component: () => <Navigate to="/models" search={{ setup: true }} replace /> });

const screens: AnyRoute[] = SCREENS.flatMap((screen) =>
  ["", "/$"].map((tail) => {
    const route: AnyRoute = createRoute({
      getParentRoute: () => teamPages,
      path: `/${screen.path}${tail}`,
      component: function TheScreen() {
        const params = route.useParams() as { team: string; _splat?: string };
        return <ScreenPage key={screen.path + params.team} screen={screen} teamId={params.team} rest={params._splat ?? ""} />;
      },
    });
    return route;
  }),
);

export const router = createRouter({
  routeTree: root.addChildren([home, inbox, inboxItem, teamPages.addChildren([team, agent, ...(screens as (typeof team)[])]), settings, models, archive, operations, setup]),
  defaultPreload: "intent",
  defaultPendingMinMs: 0,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
