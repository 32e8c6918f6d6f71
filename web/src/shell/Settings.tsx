/** Settings: of this browser; the server's are in agiraph.toml. */
import { type ReactNode, useState } from "react";
import { useLive } from "@/live";
import { Button, Header, Pills } from "@/ui";
import { RailButton } from "@/shell/Home";
import { type Theme, useShell } from "@/shell/state";

function Setting({ name, about, children }: { name: string; about: string; children: ReactNode }) {
  return (
    <div className="flex flex-wrap items-center gap-x-6 gap-y-2 border-b border-line py-4">
      <div className="min-w-[220px] flex-1">
        <h2 className="text-sm font-semibold">{name}</h2>
        <p className="text-sm text-ink-2">{about}</p>
      </div>
      {children}
    </div>
  );
}

export function Settings() {
  const { theme, singleKeys, notify, set, open } = useShell();
  const build = useLive((state) => state.build);
  const [note, setNote] = useState("");
  const switchNotify = async (on: boolean) => {
    setNote("");
    if (!on) return set({ notify: false });
    if (!("Notification" in window)) return setNote("This browser offers notifications only on https or on the machine itself.");
    if ((await Notification.requestPermission()) !== "granted") return setNote("The browser blocks notifications; allow them in its settings for this site.");
    set({ notify: true });
  };
  return (
    <>
      <Header lead={<RailButton />} title="Settings" subtitle="Of this browser" />
      <div className="scroll min-h-0 flex-1 px-6 max-md:px-4">
        <div className="mx-auto max-w-[680px] py-4">
          <Setting name="Theme" about="Light, dark, or the same as the system.">
            <Pills<Theme>
              label="Theme"
              value={theme}
              onChange={(value) => set({ theme: value })}
              options={[
                ["system", "System"],
                ["light", "Light"],
                ["dark", "Dark"],
              ]}
            />
          </Setting>
          <Setting name="Notifications" about={note || "When an agent needs you, finishes or fails while this page is in the background."}>
            <Pills
              label="Notifications"
              value={notify ? "on" : "off"}
              onChange={(value) => void switchNotify(value === "on")}
              options={[
                ["off", "Off"],
                ["on", "On"],
              ]}
            />
          </Setting>
          <Setting name="Single-key shortcuts" about="Keys such as g i or c, outside text fields.">
            <Button size="sm" onClick={() => open("keysSheet", true)}>
              Show them
            </Button>
            <Pills
              label="Single-key shortcuts"
              value={singleKeys ? "on" : "off"}
              onChange={(value) => set({ singleKeys: value === "on" })}
              options={[
                ["off", "Off"],
                ["on", "On"],
              ]}
            />
          </Setting>
          <Setting name="Models, keys and budgets" about="Set on the server, by environment or agiraph.toml. agiraph doctor prints what is in force and where it comes from.">
            <code className="rounded-sm bg-sunken px-2 py-1 text-xs">agiraph doctor</code>
          </Setting>
          <p className="py-4 text-xs text-ink-3">agiraph {build ?? ""}</p>
        </div>
      </div>
    </>
  );
}
