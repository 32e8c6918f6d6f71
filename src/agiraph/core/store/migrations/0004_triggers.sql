-- Triggers that fire once per slot, the outcome of each slot, and errands outside the database.

alter table triggers add column made_by text not null default 'system';
alter table triggers add column payer_id text references nodes (id);
alter table triggers add column generation integer not null default 0;
alter table triggers add column max_fires integer;
alter table triggers add column until bigint;
alter table triggers add column gated integer not null default 0;
alter table triggers add column gate text;
alter table triggers add column quiet integer not null default 0;
alter table triggers add column rested_at bigint;
alter table triggers add column cursor bigint not null default 0;
alter table triggers add column watched text not null default '{{}}';
alter table triggers add column secret text;
alter table triggers add column promised_to text;
alter table triggers add column tainted_by text;
alter table triggers add column ended_at bigint;
alter table triggers add column ended text;
create index triggers_of_agent on triggers (agent_id) where status = 'active';
create index triggers_hearing on triggers (team_id)
    where status = 'active' and type = 'on_event';
create index triggers_promised on triggers (agent_id, created_at) where promised_to is not null;
create index nodes_of_trigger on nodes (trigger_id, id) where trigger_id is not null;
-- For the work that ended since an agent last checked.
create index nodes_ended on nodes (team_id, ended_at) where ended_at is not null;

-- One row per slot: fired, or skipped with a reason. Heartbeats that found nothing are only counted
-- on the trigger.
create table firings (
    trigger_id text not null references triggers (id),
    slot text not null,
    at bigint not null,
    outcome text not null,
    reason text not null,
    node_id text,
    count integer not null,
    last_slot text,
    primary key (trigger_id, slot)
);
create index firings_of_trigger on firings (trigger_id, at);
create index firings_of_node on firings (node_id) where node_id is not null;

-- A file to check or a callback to call. Deleted when done.
create table errands (
    id text primary key,
    trigger_id text not null references triggers (id),
    slot text not null,
    created_at bigint not null,
    taken_at bigint
);
