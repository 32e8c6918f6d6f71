/** OperationsPage: the state of the server, and what only its owner decides. Its sections are loaded when they are opened. */
import { Suspense } from "react";
import { lazyChunk } from "@/live/chunks";
import { SidebarButton } from "@/parts/SidebarButton";
import { Header, Loading, Pills } from "@/ui";
import { useSearchParams } from "@/parts/useSearchParams";

const SECTIONS = {
  overview: { label: "Overview", view: lazyChunk(() => import("@/views/operations/Overview")) },
  health: { label: "Health", view: lazyChunk(() => import("@/views/operations/HealthChecks")) },
  providers: { label: "Providers", view: lazyChunk(() => import("@/views/operations/Providers")) },
  connections: { label: "Tools and channels", view: lazyChunk(() => import("@/views/operations/Connections")) },
  tokens: { label: "Tokens", view: lazyChunk(() => import("@/views/operations/Tokens")) },
  audit: { label: "Audit", view: lazyChunk(() => import("@/views/operations/Audit")) },
} as const;
type Name = keyof typeof SECTIONS;
const NAMES = Object.keys(SECTIONS) as Name[];

export function OperationsPage() {
  const [params, setParams] = useSearchParams();
  const name = NAMES.find((one) => one === params.section) ?? "overview";
  const { label, view: View } = SECTIONS[name];
  return (
    <>
      <Header lead={<SidebarButton />} title="Operations" subtitle="The server, its providers, and who may use it" />
      <div className="shrink-0 border-b border-line px-4 py-2 max-md:px-2 max-md:[&>div]:flex-wrap">
        <Pills<Name> label="Section" value={name} onChange={(next) => setParams({ section: next === "overview" ? undefined : next })} options={NAMES.map((one) => [one, SECTIONS[one].label])} />
      </div>
      <div className="scroll min-h-0 flex-1 px-6 max-md:px-3" tabIndex={0} role="region" aria-label={`Operations, ${label.toLowerCase()}`}>
        <div className="mx-auto max-w-[920px] space-y-4 py-5">
          <Suspense fallback={<Loading label={`Opening ${label.toLowerCase()}`} />}>
            <View />
          </Suspense>
        </div>
      </div>
    </>
  );
}
