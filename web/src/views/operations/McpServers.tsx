/** McpServers: the MCP servers of the settings, their tools, and changes that wait for the owner's consent. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { Suspense, useEffect, useState } from "react";
import { api, errorMessage, type Schemas, unwrap } from "@/api/client";
import { queryClient } from "@/api/queries";
import { capitalize } from "@/lib/format";
import { lazyChunk } from "@/live/chunks";
import { showToast } from "@/parts/toast";
import { Literal } from "@/reading/Literal";
import { ReadGate } from "@/reading/ReadGate";
import { Consent, Empty, Loaded, Problem, Removal, Section } from "@/views/operations/parts";
import { type McpServer, mcpQuery } from "@/views/operations/queries";
import { TextChange } from "@/views/operations/TextChange";
import { Button, Chip, Dialog, DialogActions, ErrorPanel, Loading, type Tone } from "@/ui";

const AddMcpServer = lazyChunk(() => import("@/views/operations/AddMcpServer"));

type Details = Schemas["McpServerDetails"];
type Tool = Schemas["McpToolView"];
const STATES: Record<McpServer["state"], [Tone, string]> = { on: ["done", "On"], changed: ["wait", "Changed"], off: ["wait", "Needs your consent"], unknown: ["plain", "Not asked yet"], faulty: ["fail", "Cannot be used"] };

/** What a server is doing, as a chip. */
function stateOf(server: McpServer): [Tone, string] {
  if (server.needs_sign_in) return ["wait", "Needs a sign-in"];
  if (server.problem && server.state !== "off" && server.state !== "faulty") return ["fail", "Failed"];
  return server.state === "on" && server.is_running ? ["done", "Connected"] : STATES[server.state];
}

export function McpServers() {
  const query = useQuery(mcpQuery);
  const [isAdding, setIsAdding] = useState(false);
  const [added, setAdded] = useState<string | null>(null);
  return (
    <Section
      title="MCP servers"
      description="Agents call their tools. A tool that is new or has changed is off until you have read and accepted it."
      action={
        <Button onClick={() => setIsAdding(true)}>
          <Plus className="size-4" aria-hidden /> Add an MCP server
        </Button>
      }
    >
      <Loaded query={query} what="the MCP servers">
        {(found) =>
          found.length === 0 ? (
            <Empty>No MCP servers. One gives agents the tools of another program: a calendar, a database, an issue tracker.</Empty>
          ) : (
            <ul className="divide-y divide-line">
              {found.map((server) => (
                <Server key={server.name} server={server} />
              ))}
            </ul>
          )
        }
      </Loaded>
      {isAdding && (
        <Suspense>
          <AddMcpServer
            onClose={() => setIsAdding(false)}
            onAdded={(server) => {
              setIsAdding(false);
              void refresh();
              if (server.needs_sign_in) showToast(`${server.name} was added. Sign in to it next.`);
              else setAdded(server.name);
            }}
          />
        </Suspense>
      )}
      {added !== null && <Review name={added} onClose={() => setAdded(null)} />}
    </Section>
  );
}

const refresh = () => queryClient.invalidateQueries({ queryKey: mcpQuery.queryKey });

function Server({ server }: { server: McpServer }) {
  const [open, setOpen] = useState<"review" | "remove" | "sign in" | null>(null);
  const params = { path: { name: server.name } };
  const ask = useMutation({ mutationFn: () => unwrap(api.POST("/api/mcp-servers/{name}/ask", { params })), onSettled: refresh });
  const [tone, label] = stateOf(server);
  const needsReview = server.state === "changed" || server.state === "off";
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5 text-sm">
      <span dir="auto" className="font-medium">{server.name}</span>
      <Chip tone={tone}>{label}</Chip>
      <span dir="auto" className="min-w-0 flex-1 basis-60 text-xs break-words text-ink-2">
        {server.problem && !server.needs_sign_in ? server.problem : capitalize(server.summary)}
        <span dir="ltr" className="block truncate text-ink-3" title={server.reached_by}>
          {server.reached_by}
        </span>
      </span>
      {server.needs_sign_in && (
        <Button size="sm" variant="primary" onClick={() => setOpen("sign in")}>
          Sign in
        </Button>
      )}
      {(server.state === "unknown" || server.state === "on") && !server.needs_sign_in && (
        <Button size="sm" disabled={ask.isPending} onClick={() => ask.mutate()} title="Starts the server and asks for its tools">
          {ask.isPending ? "Starting…" : "Ask for its tools"}
        </Button>
      )}
      {server.state !== "faulty" && server.state !== "unknown" && (
        <Button size="sm" variant={needsReview ? "primary" : "outline"} onClick={() => setOpen("review")}>
          {needsReview ? "Review" : "Show tools"}
        </Button>
      )}
      {server.can_remove && (
        <Button size="sm" aria-label={`Remove ${server.name}`} onClick={() => setOpen("remove")}>
          Remove
        </Button>
      )}
      <Problem error={ask.error} />
      {open === "review" && <Review name={server.name} onClose={() => setOpen(null)} />}
      {open === "sign in" && <SignIn server={server} onClose={() => setOpen(null)} />}
      {open === "remove" && <Removal name={server.name} what="It is ended and taken out of agiraph.toml, and its tools are forgotten. What its program has stored stays in the home." remove={() => unwrap(api.DELETE("/api/mcp-servers/{name}", { params }))} onRemoved={refresh} onClose={() => setOpen(null)} />}
    </li>
  );
}

/** The sign-in happens in another tab; the list, asked again and again, says when it is done. */
function SignIn({ server, onClose }: { server: McpServer; onClose: () => void }) {
  const begin = useMutation({ mutationFn: () => unwrap(api.POST("/api/mcp-servers/{name}/sign-in", { params: { path: { name: server.name } } })) });
  const { mutate } = begin;
  useEffect(() => mutate(), [mutate]);
  useQuery({ ...mcpQuery, refetchInterval: 2_000 });
  useEffect(() => {
    if (!server.needs_sign_in) onClose();
  });
  const url = begin.data?.url;
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title={`Sign in to ${server.name}`} description="Open this address in a browser on the machine that runs agiraph. You are signed in when the browser says so.">
      {begin.isPending && <Loading label="Asking where the sign-in is" />}
      <Problem error={begin.error} />
      {url && (
        <p dir="ltr" className="mb-4 rounded-sm bg-sunken p-3 font-mono text-xs break-all">
          <Literal text={url} isCode />
        </p>
      )}
      <DialogActions>
        <Button onClick={onClose}>Close</Button>
        {url && (
          <a href={url} target="_blank" rel="noopener noreferrer" className="inline-flex h-8 items-center rounded-sm bg-ink px-3 text-sm font-medium text-paper pointer-coarse:h-11">
            Open {new URL(url).host}
          </a>
        )}
      </DialogActions>
    </Dialog>
  );
}

const DESCRIPTIONS: Record<Details["state"], string> = {
  off: "A file of another program names this server. agiraph starts it, or connects to it, once you accept it.",
  changed: "Models read these descriptions and may follow them. Read what has changed before you accept it.",
  on: "You have accepted these tools.",
  unknown: "The server was not asked for its tools yet.",
  faulty: "This server cannot be used.",
};

function Review({ name, onClose }: { name: string; onClose: () => void }) {
  const params = { path: { name } };
  const details = useQuery({ queryKey: [...mcpQuery.queryKey, name] as const, queryFn: () => unwrap(api.GET("/api/mcp-servers/{name}", { params })), staleTime: 0, gcTime: 0 });
  const accept = useMutation({
    mutationFn: (sha256: string) => unwrap(api.POST("/api/mcp-servers/{name}/confirm", { params, body: { sha256 } })),
    onSuccess: async (now) => {
      await refresh();
      // Accepting how a server is reached starts it. Its tools, which are shown then, are accepted with a second click.
      if (now.state === "on") onClose();
    },
    // Somebody else may have changed it meanwhile: the dialog shows the present content.
    onError: () => void details.refetch(),
  });
  const { data } = details;
  const isOpen = data?.state === "off" || data?.state === "changed";
  const shown = data?.state === "changed" ? data.shown_tools.filter((tool) => tool.state !== "on") : (data?.shown_tools ?? []);
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} className="w-[min(820px,calc(100vw-24px))]" title={isOpen ? `Accept ${name}?` : `Tools of ${name}`} description={data && DESCRIPTIONS[data.state]}>
      <ReadGate>
        <div className="space-y-4">
          {details.isPending && <Loading label="Reading what has changed" />}
          {details.isError && !data && <ErrorPanel title="The server could not be read" detail={errorMessage(details.error)} onRetry={() => void details.refetch()} />}
          {data?.state === "off" && (
            <section aria-label="How it is reached">
              <p className="mb-1 text-xs break-all text-ink-2">From {data.origin}</p>
              <TextChange label="How it is reached" before={null} now={data.reached.join("\n")} />
            </section>
          )}
          {data?.state !== "off" && shown.map((tool) => <ToolText key={tool.name} tool={tool} />)}
          <Problem error={accept.error} />
        </div>
        {isOpen ? (
          <Consent question={data.question} agree={accept.isPending ? "Accepting…" : "Accept"} canAgree={!accept.isPending && !details.isFetching} onAgree={() => accept.mutate(data.sha256)} onRefuse={onClose} />
        ) : (
          <DialogActions>
            <Button onClick={onClose}>Close</Button>
          </DialogActions>
        )}
      </ReadGate>
    </Dialog>
  );
}

const KINDS: Record<Tool["state"], [Tone, string]> = { on: ["done", "Accepted"], new: ["work", "New"], changed: ["wait", "Changed"], gone: ["plain", "Gone"] };
/** What the owner declared that a call does. */
const REACH: Record<Tool["touches"], string> = { nothing: "touches nothing", reads: "only reads", changes: "changes something", sends: "may send something out" };
const words = (description: string, schema: string): string => `${description}\n\narguments: ${schema}`;

function ToolText({ tool }: { tool: Tool }) {
  const [tone, label] = KINDS[tool.state];
  return (
    <section aria-label={tool.name}>
      <h3 className="mb-1 flex flex-wrap items-center gap-2 text-sm font-semibold">
        <span dir="ltr" className="literal font-mono text-xs">
          <Literal text={tool.name} />
        </span>
        <Chip tone={tone}>{label}</Chip>
        <span className="text-xs font-normal text-ink-2">{REACH[tool.touches]}</span>
      </h3>
      <TextChange label={`Description of ${tool.name}`} before={tool.state === "changed" ? words(tool.old_description, tool.old_arguments) : null} now={words(tool.description, tool.arguments)} />
    </section>
  );
}
