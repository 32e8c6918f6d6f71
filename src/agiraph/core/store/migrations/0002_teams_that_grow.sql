-- Nodes that need each other, share a thread or make others; teams with limits; stages whose
-- clock stands still while a person is asked.

alter table teams add column limits text not null default '{{}}';

alter table agents add column identity text not null default '';
alter table agents add column notes text not null default '';
create index agents_of_team on agents (team_id, created_at);

alter table stages add column paused_since bigint;
alter table stages add column paused_seconds double precision not null default 0;
create index stages_of_node on stages (node_id, created_at);

alter table nodes add column payer_id text references nodes (id);
alter table nodes add column thread_id text;
alter table nodes add column depth integer not null default 0;
alter table nodes add column hops integer not null default 0;
alter table nodes add column needs_tools text not null default '[]';
alter table nodes add column if_unmet text not null default 'fail';
alter table nodes add column doubts text;
alter table nodes add column stalled_at bigint;
update nodes set thread_id = (
    select t.id from threads t where t.node_id = nodes.id order by t.created_at desc, t.id desc limit 1
);
create index threads_under on threads (parent_id) where parent_id is not null;
create index nodes_at_work on nodes (claimed_at) where status = 'running';
create index messages_of_node on messages (node_id) where node_id is not null;
create index nodes_paid_by on nodes (payer_id) where payer_id is not null;
