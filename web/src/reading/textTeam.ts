/** TextTeam: the team that the texts below it are about. A page that shows texts of several teams, as the inbox does, sets it. */
import { createContext } from "react";

export const TextTeam = createContext<string | null>(null);
