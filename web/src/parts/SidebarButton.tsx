import { Menu as MenuIcon } from "lucide-react";
import { useShell } from "@/parts/shellState";
import { IconButton } from "@/ui";

/** Opens the sidebar on narrow screens, where it is a drawer. */
export function SidebarButton() {
  const setOpen = useShell((state) => state.setOpen);
  return (
    <IconButton label="Teams" className="md:hidden" onClick={() => setOpen("sidebarDrawer", true)}>
      <MenuIcon className="size-5" />
    </IconButton>
  );
}
