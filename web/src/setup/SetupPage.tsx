/** SetupPage: sets up a model at any time; the welcome page shows the same while no model is set up. */
import { Link } from "@tanstack/react-router";
import SetUpModel from "@/setup/SetUpModel";
import { SidebarButton } from "@/shell/SidebarButton";
import { Header } from "@/ui";

export function SetupPage() {
  return (
    <>
      <Header lead={<SidebarButton />} title="Set up a model" subtitle="A key, a model on this machine, or the demo">
        <Link to="/models" className="text-sm underline decoration-line-2 underline-offset-2 hover:decoration-ink pointer-coarse:min-h-11 pointer-coarse:leading-[44px]">
          All models
        </Link>
      </Header>
      <div className="scroll min-h-0 flex-1 p-6 max-md:p-3" tabIndex={0} role="region" aria-label="Set up a model">
        <SetUpModel />
      </div>
    </>
  );
}
