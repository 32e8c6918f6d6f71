/** Home: the field for a new team, and what all teams do today. Without a model and teams, it is the welcome page, where a person sets up a model. */
import { useQuery } from "@tanstack/react-query";
import { Suspense, useEffect, useState } from "react";
import { errorMessage } from "@/api/client";
import { overviewQuery } from "@/api/queries";
import { lazyChunk } from "@/live/chunks";
import { SidebarButton } from "@/parts/SidebarButton";
import { useShell } from "@/parts/shellState";
import { Button, EmptyState, ErrorPanel, Header, Loading, Logo } from "@/ui";
import { NewTeam } from "@/views/home/NewTeam";
import { copyOf, demoStart } from "@/views/home/teamForm";
import { TodayCards } from "@/views/home/TodayCards";
import { DefaultModel } from "@/views/models/DefaultModel";
import { modelsQuery } from "@/views/models/modelsQuery";

const SetUpModel = lazyChunk(() => import("@/views/models/SetUpModel"));

export default function Home() {
  const { newTeam, startsDemo, copies, update } = useShell();
  const overview = useQuery(overviewQuery);
  const models = useQuery(modelsQuery);
  const [asked, setAsked] = useState(0);
  const [begins, setBegins] = useState("own");
  const copied = useQuery({ queryKey: ["copied team", begins], queryFn: () => copyOf(begins), enabled: begins.startsWith("team_"), staleTime: Infinity, gcTime: 0 });
  // The result of a setup stays on the page, although a model is set up then.
  const [isWelcome, setIsWelcome] = useState<boolean>();
  const isKnown = overview.data !== undefined && (overview.data.length > 0 || !models.isPending);
  if (isWelcome === undefined && isKnown) setIsWelcome(overview.data.length === 0 && models.data?.default === "demo");
  useEffect(() => {
    if (!newTeam) return;
    update({ newTeam: false, startsDemo: false, copies: "" });
    setIsWelcome(false);
    setBegins(copies || (startsDemo ? "demo" : "own"));
    setAsked((count) => count + 1);
  }, [newTeam, startsDemo, copies, update]);
  const teams = overview.data;
  return (
    <>
      <Header lead={<SidebarButton />} title={isWelcome ? "Welcome" : "Start"} />
      <div className="scroll min-h-0 flex-1">
        {isWelcome === undefined ? (
          overview.isError ? <ErrorPanel title="Your teams could not be loaded" detail={errorMessage(overview.error)} onRetry={() => void overview.refetch()} /> : <Loading label="Loading your teams" />
        ) : isWelcome ? (
          <Welcome onStart={() => update({ newTeam: true })} />
        ) : (
          <div className="mx-auto flex max-w-[880px] flex-col gap-10 px-6 pt-[7vh] pb-10 max-md:gap-8 max-md:px-4 max-md:pt-6">
            {copied.isLoading ? (
              <Loading label="Reading the team" className="p-0" />
            ) : copied.isError ? (
              <ErrorPanel title="The team could not be copied" detail={errorMessage(copied.error)} onRetry={() => void copied.refetch()} />
            ) : (
              <NewTeam key={begins} begun={begins === "demo" ? demoStart() : (copied.data ?? null)} asked={asked} onLeave={() => setBegins("own")} />
            )}
            {teams && teams.length > 0 ? <TodayCards teams={teams} /> : <Introduction />}
          </div>
        )}
      </div>
    </>
  );
}

const HOW = "You say what you want. A coordinator plans it, hires the teammates it needs, and tells you when something needs you. You can watch every agent and talk to it while it works.";

const Welcome = ({ onStart }: { onStart: () => void }) => (
  <EmptyState
    icon={<Logo className="size-8" />}
    title="Give a team something to do"
    action={
      <>
        <Suspense fallback={<Loading label="Opening the setup" />}>
          <SetUpModel isWelcome />
        </Suspense>
        <Button variant="primary" size="lg" className="mt-4" onClick={onStart}>
          New team
        </Button>
      </>
    }
  >
    {HOW}
  </EmptyState>
);

/** What a person reads below the field until there is a team. */
const Introduction = () => (
  <div className="mx-auto flex max-w-[60ch] flex-col gap-2">
    <p className="text-center text-sm text-ink-2">{HOW}</p>
    <DefaultModel />
  </div>
);
