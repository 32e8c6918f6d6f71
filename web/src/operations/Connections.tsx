/** Connections: channels, MCP servers, and own tools and skills, with what waits for the owner's consent. */
import { Channels } from "@/operations/Channels";
import { McpServers } from "@/operations/McpServers";
import { OwnTools } from "@/operations/OwnTools";

export default function Connections() {
  return (
    <>
      <Channels />
      <McpServers />
      <OwnTools />
    </>
  );
}
