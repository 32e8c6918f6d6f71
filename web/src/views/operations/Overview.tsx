/** Overview: the emergency stop, how much work there is, the workers, the storage and the sandbox. */
import { useQuery } from "@tanstack/react-query";
import { capitalize, fileSize, fullTime } from "@/lib/format";
import { EmergencyStop } from "@/views/operations/EmergencyStop";
import { Figure, Lines, Loaded, Section } from "@/views/operations/parts";
import { type Operations, operationsQuery } from "@/views/operations/queries";
import { WAITS } from "@/parts/serverQueries";
import { Chip, type Tone } from "@/ui";
import { RelativeTime, useNow } from "@/parts/RelativeTime";

export default function Overview() {
  const query = useQuery(operationsQuery);
  return (
    <Loaded query={query} what="the state of the server">
      {(state) => (
        <>
          <EmergencyStop stopped={state.stopped} />
          <Work state={state} />
          <Storage storage={state.storage} />
          <Sandbox sandbox={state.sandbox} />
          <p className="text-xs text-ink-3">agiraph {state.build}</p>
        </>
      )}
    </Loaded>
  );
}

function Work({ state }: { state: Operations }) {
  const { queue, workers, failing, stopped } = state;
  return (
    <Section title="Work" description="Tasks, replies and reflections of all teams.">
      <dl className="flex divide-x divide-line max-sm:grid max-sm:grid-cols-2 max-sm:divide-x-0">
        <Figure name="Running" value={queue.running} />
        <Figure name="Queued" value={queue.queued} note={stopped ? "wait: all work is stopped" : "ready to run"} />
        <Figure name="Waiting" value={queue.waiting} note="for a person, a teammate or a time" />
        <Figure name="Pending" value={queue.pending} note="not assigned, or a dependency is open" />
      </dl>
      <ul className="divide-y divide-line border-t border-line text-sm">
        {workers.length === 0 && <li className="px-4 py-2.5 text-fail">No process does any work. Start one with `agiraph work`.</li>}
        {workers.map((worker) => {
          const [tone, label]: [Tone, string] = worker.failing.length > 0 ? ["fail", "Failing"] : worker.silent_s > 10 ? ["wait", `Silent for ${Math.round(worker.silent_s)} s`] : stopped ? ["wait", WAITS] : ["done", "Active"];
          return (
            <li key={worker.name} className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-2.5">
              <span dir="auto" className="min-w-0 flex-1">Worker: {worker.name}</span>
              <Chip tone={tone}>{label}</Chip>
              {worker.failing.map((line) => (
                <p key={line} dir="auto" className="basis-full text-xs break-words text-fail">
                  {line}
                </p>
              ))}
            </li>
          );
        })}
        {failing.filter((line) => !workers.some((worker) => worker.failing.includes(line))).map((line) => (
          <li key={line} dir="auto" className="px-4 py-2.5 text-xs break-words text-fail">
            {line}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Storage({ storage }: { storage: Operations["storage"] }) {
  const now = useNow(60_000);
  const backup = storage.last_backup;
  return (
    <Section title="Storage" description={<span dir="ltr" className="literal">{storage.home}</span>}>
      <dl className="flex divide-x divide-line max-sm:grid max-sm:grid-cols-2 max-sm:divide-x-0">
        <Figure name="Free disk space" value={fileSize(storage.free_bytes)} />
        <Figure name="Database" value={fileSize(storage.database_bytes)} note={storage.database === "sqlite" ? "SQLite" : "PostgreSQL"} />
        <Figure name="Output of commands" value={fileSize(storage.output_bytes)} />
        <Figure
          name="Last backup"
          value={backup ? <RelativeTime at={backup.at} now={now} /> : "None"}
          note={
            backup ? (
              <span dir="ltr" title={fullTime(backup.at)} className="break-all">
                {backup.file}
              </span>
            ) : (
              <>
                Make one with <code>agiraph backup FILE</code>
              </>
            )
          }
        />
      </dl>
    </Section>
  );
}

function Sandbox({ sandbox }: { sandbox: Operations["sandbox"] }) {
  const tone: Tone = sandbox.level === "none" ? "fail" : "done";
  return (
    <Section title="Sandbox" description={sandbox.description} action={<Chip tone={tone}>{capitalize(sandbox.level)}</Chip>}>
      {(sandbox.not_held.length > 0 || sandbox.reasons.length > 0 || sandbox.limited_by) && (
        <div className="space-y-1 px-4 py-3">
          {sandbox.limited_by && !sandbox.description.includes(sandbox.limited_by) && <p className="text-xs text-ink-2">{sandbox.limited_by}</p>}
          <Lines label="Not enforced" lines={sandbox.not_held} />
          <Lines label="Why no stronger level" lines={sandbox.reasons} />
        </div>
      )}
    </Section>
  );
}

