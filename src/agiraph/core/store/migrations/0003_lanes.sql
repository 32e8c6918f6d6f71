-- An agent replies to a person, works and reflects concurrently, each in a lane of its own.

alter table nodes add column lane text not null default 'work';
drop index nodes_running;
-- In each lane an agent runs one node at a time, whichever process claims it.
create unique index nodes_running on nodes (assignee_id, lane) where status = 'running';
drop index nodes_queued;
create index nodes_queued on nodes (assignee_id, lane, id) where status = 'assigned';

alter table messages add column reply_id text;
alter table messages add column attachments text not null default '[]';
create index messages_to_answer on messages (reply_id) where reply_id is not null;

alter table teams add column learns integer not null default 1;

alter table threads add column harvested_at bigint;
alter table threads add column tainted_by text;
create index threads_to_harvest on threads (agent_id, closed_at)
    where harvested_at is null and closed_at is not null;
