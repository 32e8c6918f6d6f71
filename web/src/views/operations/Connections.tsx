/** Connections: channels, MCP servers, and own tools and skills, with what waits for the owner's consent. */
import { Channels } from "@/views/operations/Channels";
import { McpServers } from "@/views/operations/McpServers";
import { OwnTools } from "@/views/operations/OwnTools";

export default function Connections() {
  return (
    <>
      <Channels />
      <McpServers />
      <OwnTools />
    </>
  );
}
