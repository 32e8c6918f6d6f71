/** ScreenHeader: the bar at the top of a team's screen: its title, its facts and its actions. On a phone it also says which team it is, and opens the list of teams. */
import type { ComponentProps, ReactNode } from "react";
import type { Team } from "@/api/client";
import { SidebarButton } from "@/parts/SidebarButton";
import { teamLine } from "@/parts/teamState";
import { PHONE_PX, useNarrow } from "@/parts/useNarrow";
import { Header } from "@/ui";

interface Props extends Pick<ComponentProps<typeof Header>, "title" | "middle"> {
  team: Team;
  facts?: (string | false)[];
  children?: ReactNode;
}

export function ScreenHeader({ team, facts = [], ...rest }: Props) {
  const isPhone = useNarrow(PHONE_PX);
  return <Header lead={<SidebarButton />} subtitle={isPhone ? teamLine(team, ...facts) : facts.filter(Boolean).join(" · ")} {...rest} />;
}
