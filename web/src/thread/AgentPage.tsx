export function AgentPage(_: { teamId: string; agentId: string; at?: string }) { return null; }
