-- The open work of one agent: looked for when it is given work, gets a message or ends work.
create index nodes_open on nodes (assignee_id, lane, status);
