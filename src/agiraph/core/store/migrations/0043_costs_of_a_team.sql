-- What a team has spent, by agent, purpose and model: read in the order in which it is summed.
drop index spend_of_team;
create index spend_of_team on spend (team_id, agent_id, purpose, model);
-- The goals of a team: the last one is looked for when its budget is shown.
create index nodes_goals on nodes (team_id, id) where source = 'system' and parent_id is null;
