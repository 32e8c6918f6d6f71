/** Settings: the preferences of this browser, and what the person says about themselves. The server's settings are in agiraph.toml. */
import { type ReactNode, Suspense, useState } from "react";
import { Link } from "@tanstack/react-router";
import { useLive } from "@/live";
import { lazyChunk } from "@/live/chunks";
import { Button, Header, Pills } from "@/ui";
import { AwaySetting } from "@/views/home/AwaySetting";
import { askForNotifications } from "@/views/home/notifyPermission";
import { SidebarButton } from "@/parts/SidebarButton";
import { type Theme, useShell } from "@/parts/shellState";

const SignInDevice = lazyChunk(() => import("@/views/home/SignInDevice"));

function Setting({ name, description, children }: { name: string; description: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center gap-x-6 gap-y-2 border-b border-line py-4">
      <div className="min-w-[220px] flex-1">
        <h2 className="text-sm font-semibold">{name}</h2>
        <p dir="auto" className="text-sm text-ink-2">{description}</p>
      </div>
      <div className="flex flex-wrap items-center gap-3">{children}</div>
    </div>
  );
}

export function Settings() {
  const { theme, singleKeys, notifications, update, setOpen } = useShell();
  const build = useLive((state) => state.build);
  const [problem, setProblem] = useState("");
  const [isSigningIn, setIsSigningIn] = useState(false);
  const switchNotifications = async (on: boolean) => {
    setProblem("");
    if (!on) return update({ notifications: false });
    const refusal = await askForNotifications();
    if (refusal) return setProblem(refusal);
    update({ notifications: true });
  };
  return (
    <>
      <Header lead={<SidebarButton />} title="Settings" subtitle="This browser, you and the server" />
      <div className="scroll min-h-0 flex-1 px-6 max-md:px-4">
        <div className="mx-auto max-w-[680px] py-4">
          <Setting name="Theme" description="Light, dark, or the same as the system.">
            <Pills<Theme>
              label="Theme"
              value={theme}
              onChange={(value) => update({ theme: value })}
              options={[
                ["system", "System"],
                ["light", "Light"],
                ["dark", "Dark"],
              ]}
            />
          </Setting>
          <Setting name="Notifications" description={problem || "When an agent needs you, finishes or fails while this page is in the background."}>
            <Pills
              label="Notifications"
              value={notifications ? "on" : "off"}
              onChange={(value) => void switchNotifications(value === "on")}
              options={[
                ["off", "Off"],
                ["on", "On"],
              ]}
            />
          </Setting>
          <Setting name="Away" description="Nothing is sent to your channels while you are away. Questions wait in the inbox; a question with a time limit ends when its time has passed.">
            <AwaySetting />
          </Setting>
          <Setting name="Single-key shortcuts" description="Keys such as g i or c, outside text fields.">
            <Button size="sm" onClick={() => setOpen("shortcutsDialog", true)}>
              Show them
            </Button>
            <Pills
              label="Single-key shortcuts"
              value={singleKeys ? "on" : "off"}
              onChange={(value) => update({ singleKeys: value === "on" })}
              options={[
                ["off", "Off"],
                ["on", "On"],
              ]}
            />
          </Setting>
          <Setting name="Sign in another device" description="A code for the camera of your phone, which signs it in as you.">
            <Button size="sm" onClick={() => setIsSigningIn(true)}>
              Show the code
            </Button>
          </Setting>
          <Setting name="Models, keys and budgets" description="A key is entered under Models, or set by an environment variable. The command prints all settings and where they come from.">
            <code className="rounded-sm bg-sunken px-2 py-1 text-xs">agiraph doctor</code>
            <Link to="/models" className="inline-flex h-7 items-center rounded-sm border border-line-2 bg-surface px-2.5 text-xs font-medium hover:bg-hover pointer-coarse:h-10">
              Models
            </Link>
          </Setting>
          <Setting name="Operations" description="The server's health, providers, sandbox, MCP servers, own tools, channels, tokens and audit, and the emergency stop.">
            <Link to="/operations" className="inline-flex h-7 items-center rounded-sm border border-line-2 bg-surface px-2.5 text-xs font-medium hover:bg-hover pointer-coarse:h-11">
              Open operations
            </Link>
          </Setting>
          <p className="py-4 text-xs text-ink-3">agiraph {build ?? ""}</p>
        </div>
      </div>
      {isSigningIn && (
        <Suspense>
          <SignInDevice onClose={() => setIsSigningIn(false)} />
        </Suspense>
      )}
    </>
  );
}
