-- The node that paid for a cost in the end: what all work of a goal has cost is read by it.
alter table spend add column outermost_id text not null default '';
update spend set outermost_id = coalesce((
    with recursive above(id, next_id) as (
        select n.id, coalesce(n.parent_id, n.payer_id) from nodes n where n.id = spend.node_id
        union
        select p.id, coalesce(p.parent_id, p.payer_id) from nodes p
        join above a on p.id = a.next_id)
    select id from above where next_id is null), node_id);
create index spend_outermost on spend (outermost_id);
-- What a team has spent, by agent, purpose and model, and what of it each goal has paid for.
drop index spend_of_team;
create index spend_of_team on spend (team_id, agent_id, purpose, model, outermost_id);
