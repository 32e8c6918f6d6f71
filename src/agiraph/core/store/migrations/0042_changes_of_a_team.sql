-- When the knowledge of a team was last maintained: looked for when work of it begins.
create index knowledge_changes_of_team on knowledge_changes (team_id, verb, id);
