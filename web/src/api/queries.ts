/** Queries: what screens fetch from the server, by query key. Events invalidate keys; see `live/invalidation.ts`. */
import { QueryClient, infiniteQueryOptions, keepPreviousData, queryOptions } from "@tanstack/react-query";
import { ApiError, api, type Message, type Schemas, unwrap } from "@/api/client";

/** The second part of a key is the id of its owner (team, agent, node or thread): events name the owners whose data changed. */
export const queryKeys = {
  teams: ["teams"] as const,
  team: (team: string) => ["teams", team] as const,
  overview: ["overview"] as const,
  archived: ["overview", "archived"] as const,
  me: ["me"] as const,
  digest: ["digest"] as const,
  grants: (team: string) => ["grants", team] as const,
  agents: (team: string) => ["agents", team] as const,
  conversation: (agent: string) => ["conversation", agent] as const,
  inbox: ["inbox"] as const,
  folderChanges: (team: string) => ["folder-changes", team] as const,
  jobs: (team: string) => ["jobs", team] as const,
  board: (team: string) => ["board", team] as const,
  stages: (team: string) => ["stages", team] as const,
  node: (node: string) => ["node", node] as const,
  files: (team: string, path = "") => ["files", team, path] as const,
  memory: (team: string, path = "") => ["memory", team, path] as const,
  insights: (agent: string) => ["insights", agent] as const,
  memories: (agent: string) => ["memories", agent] as const,
  changes: (agent: string) => ["changes", agent] as const,
  unconfirmed: (team: string) => ["unconfirmed", team] as const,
  triggers: (team: string) => ["triggers", team] as const,
  cost: (team: string) => ["cost", team] as const,
  dayCost: ["day-cost"] as const,
  threads: (agent: string) => ["threads", agent] as const,
  thread: (thread: string) => ["thread", thread] as const,
};

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // Events invalidate the data that changed, so the data need not be fetched again after a short time or on focus.
      staleTime: 60_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.isOffline || error.status >= 500),
    },
  },
});

const MESSAGES_PER_PAGE = 100;
const FOUND_PER_PAGE = 50;
/** The most that the server returns at once. */
const MOST_MESSAGES_PER_PAGE = 500;

export const teamsQuery = queryOptions({
  queryKey: queryKeys.teams,
  queryFn: () => unwrap(api.GET("/api/teams", { params: { query: { limit: 500 } } })),
});

/** One team by its id or name. */
export const teamQuery = (team: string) =>
  queryOptions({
    queryKey: queryKeys.team(team),
    queryFn: () => unwrap(api.GET("/api/teams/{team}", { params: { path: { team } } })),
  });

/** All teams with their members, for the sidebar and the palette: one request, however many there are. */
export const overviewQuery = queryOptions({
  queryKey: queryKeys.overview,
  queryFn: () => unwrap(api.GET("/api/overview")),
});

/** The open work of a team and what ended last, with how far it is. */
export const jobsQuery = (team: string) =>
  queryOptions({
    queryKey: queryKeys.jobs(team),
    queryFn: () => unwrap(api.GET("/api/teams/{team}/jobs", { params: { path: { team } } })),
  });

/** The open work that was begun for a message of the person. It changes with the open work of the team. */
export const workOfMessageQuery = (team: string, message: string) =>
  queryOptions({
    queryKey: [...queryKeys.jobs(team), "begun for", message] as const,
    queryFn: () => unwrap(api.GET("/api/messages/{message}/work", { params: { path: { message } } })),
  });

export const archivedQuery = queryOptions({
  queryKey: queryKeys.archived,
  queryFn: () => unwrap(api.GET("/api/overview", { params: { query: { archived: true } } })),
});

export const agentsQuery = (team: string) =>
  queryOptions({
    queryKey: queryKeys.agents(team),
    queryFn: () => unwrap(api.GET("/api/teams/{team}/agents", { params: { path: { team }, query: { all: true } } })),
  });

/** What all teams have spent today, and the daily limit. */
export const dayCostQuery = queryOptions({
  queryKey: queryKeys.dayCost,
  queryFn: () => unwrap(api.GET("/api/cost")),
});

/** A list of the inbox: a box, and there the items of one team, of one kind, or those that are not answered. */
export interface InboxList {
  box: "inbox" | "snoozed" | "archived";
  team: string;
  kind: Schemas["InboxRow"]["message"]["kind"] | null;
  open: boolean;
}
const ROWS_PER_PAGE = 40;
const fetchRows = ({ kind, ...list }: InboxList, after = "") =>
  unwrap(api.GET("/api/inbox/rows", { params: { query: { ...list, kind: kind as "report" | null, after, limit: ROWS_PER_PAGE } } }));
const OPEN: InboxList = { box: "inbox", team: "", kind: null, open: true };

/** What the person has not answered, of all teams or of one, with the counts of the inbox: what every page needs. Changes come by `deltas.ts`. */
export const openQuery = (team = "") => {
  const list = { ...OPEN, team };
  return queryOptions({ queryKey: [...queryKeys.inbox, "open", list] as const, queryFn: () => fetchRows(list), staleTime: Infinity });
};

/** The rows of a list, page by page. */
export const inboxListQuery = (list: InboxList) =>
  infiniteQueryOptions({
    queryKey: [...queryKeys.inbox, "list", list] as const,
    queryFn: ({ pageParam }) => fetchRows(list, pageParam),
    initialPageParam: "",
    getNextPageParam: (page: Schemas["InboxRows"]) => page.cursor,
    staleTime: Infinity,
  });

/** An item with all its words. */
export const inboxItemQuery = (id: string) =>
  queryOptions({
    queryKey: [...queryKeys.inbox, "item", id] as const,
    queryFn: () => unwrap(api.GET("/api/inbox/{item}", { params: { path: { item: id } } })),
    retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.isOffline),
  });

export const digestQuery = queryOptions({
  queryKey: queryKeys.digest,
  queryFn: () => unwrap(api.GET("/api/inbox/digest", { params: { query: { words: true } } })),
});

/** Things of all teams that hold all words of a query. Kept for a short time: no event says that the answer has changed. */
export const searchQuery = (query: string) =>
  queryOptions({
    queryKey: ["search", query] as const,
    queryFn: () => unwrap(api.GET("/api/search", { params: { query: { query, limit: 6 } } })),
    enabled: isSearchable(query),
    staleTime: 5_000,
    placeholderData: keepPreviousData,
  });

export const boardQuery = (team: string) =>
  queryOptions({
    queryKey: queryKeys.board(team),
    queryFn: () => unwrap(api.GET("/api/teams/{team}/board", { params: { path: { team } } })),
  });

export const stagesQuery = (team: string) =>
  queryOptions({
    queryKey: queryKeys.stages(team),
    queryFn: () => unwrap(api.GET("/api/teams/{team}/stages", { params: { path: { team } } })),
  });

export const nodeQuery = (node: string) =>
  queryOptions({
    queryKey: queryKeys.node(node),
    queryFn: () => unwrap(api.GET("/api/nodes/{node}", { params: { path: { node } } })),
  });

interface LoadedConversation {
  /** Oldest first. */
  messages: Message[];
  /** Whether the server has messages before the first one. */
  hasMore: boolean;
}

const fetchMessages = (agent: string, before: string, limit = MESSAGES_PER_PAGE, query = "") =>
  unwrap(api.GET("/api/agents/{agent}/conversation", { params: { path: { agent }, query: { before, limit, query } } }));

/** Whether a text is worth a search: one letter of Latin says nothing, one of another script may be a word. */
export const isSearchable = (text: string): boolean => text.length > 1 || text > "\u024f";

/** The messages of a whole conversation that hold all words of a text, newest first, in pages. */
export const foundMessagesQuery = (agent: string, text: string) =>
  infiniteQueryOptions({
    queryKey: ["search", agent, text] as const,
    queryFn: async ({ pageParam }) => (await fetchMessages(agent, pageParam, FOUND_PER_PAGE, text)).toReversed(),
    initialPageParam: "",
    getNextPageParam: (page) => (page.length === FOUND_PER_PAGE ? page.at(-1)!.id : undefined),
    enabled: isSearchable(text),
    staleTime: 5_000,
  });

export const meQuery = { queryKey: queryKeys.me, queryFn: () => unwrap(api.GET("/api/persons/me")) };

/** Fetch all knowledge again after a change. */
export function invalidateKnowledge(): void {
  for (const key of ["insights", "memories", "changes", "unconfirmed"]) void queryClient.invalidateQueries({ queryKey: [key] });
}

/** Fetch the newest page and join it to the older pages in the cache. Message ids sort by time. */
export const conversationQuery = (agent: string) =>
  queryOptions({
    queryKey: queryKeys.conversation(agent),
    queryFn: async (): Promise<LoadedConversation> => {
      const newest = await fetchMessages(agent, "");
      const known = queryClient.getQueryData<LoadedConversation>(queryKeys.conversation(agent));
      return joinPages(known, { messages: newest, hasMore: newest.length === MESSAGES_PER_PAGE });
    },
  });

/** Return the known messages followed by the newest page. If both do not overlap, messages between them are missing, so only the newest page is kept. */
export function joinPages(known: LoadedConversation | undefined, newest: LoadedConversation): LoadedConversation {
  const first = newest.messages[0];
  const older = first && known ? known.messages.filter((one) => one.id < first.id) : [];
  const isOverlapping = known?.messages.some((one) => newest.messages.some((other) => other.id === one.id)) ?? false;
  if (!known || !isOverlapping || older.length === 0) return newest;
  return { messages: [...older, ...newest.messages], hasMore: known.hasMore };
}

/** Load older messages into the cache until a message is among them. Message ids sort by time. */
export async function loadMessagesUntil(agent: string, message: string): Promise<void> {
  for (;;) {
    const known = queryClient.getQueryData<LoadedConversation>(queryKeys.conversation(agent));
    if (!known?.hasMore || !known.messages[0] || known.messages[0].id <= message) return;
    await loadOlderMessages(agent, MOST_MESSAGES_PER_PAGE);
  }
}

/** Load one more page of older messages into the cache. */
export async function loadOlderMessages(agent: string, limit = MESSAGES_PER_PAGE): Promise<void> {
  const known = queryClient.getQueryData<LoadedConversation>(queryKeys.conversation(agent));
  const first = known?.messages[0];
  if (!known?.hasMore || !first) return;
  const older = await fetchMessages(agent, first.id, limit);
  queryClient.setQueryData<LoadedConversation>(queryKeys.conversation(agent), (now) =>
    now ? { messages: [...older.filter((one) => one.id < now.messages[0]!.id), ...now.messages], hasMore: older.length === limit } : now,
  );
}

/** Tell the server in which zone the person lives, as the browser knows it, unless the server knows one: what the person said themselves stays. */
export async function tellTimeZone(): Promise<void> {
  const { timeZone: zone } = Intl.DateTimeFormat().resolvedOptions();
  const me = await unwrap(api.GET("/api/persons/me"));
  if (!zone || me.zone) return;
  queryClient.setQueryData(queryKeys.me, await unwrap(api.PATCH("/api/persons/me", { body: { zone } })));
}
