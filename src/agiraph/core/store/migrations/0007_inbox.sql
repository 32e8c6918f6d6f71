-- Looking back on work, briefings that earn their place, and an outbox beside the outcome.

-- The node that reflects on a thread.
alter table threads add column reflection_id text;
create index threads_looked_at on threads (reflection_id) where reflection_id is not null;

alter table teams add column briefing_threshold double precision not null default 0.6;
alter table teams add column quiet_hours text not null default '';
alter table teams add column quiet_zone text not null default 'UTC';

alter table messages add column rating text;
create index messages_in_inbox on messages (recipient, id)
    where kind in ('question', 'approval', 'briefing', 'report', 'failure', 'result');
create index messages_briefed on messages (team_id, id) where kind = 'briefing';

-- The channels of the running processes, which send messages to the person besides the inbox.
create table channels (
    name text primary key,
    kinds text not null
);

-- One message through one channel. A failed delivery never changes the outcome of the work.
create table deliveries (
    id text primary key,
    team_id text not null references teams (id),
    message_id text not null references messages (id),
    channel text not null,
    status text not null,
    created_at bigint not null,
    due_at bigint not null,
    tries integer not null,
    owner text,
    error text,
    sent_at bigint,
    unique (message_id, channel)
);
create index deliveries_due on deliveries (channel, due_at) where status in ('queued', 'sending');
create index deliveries_failed on deliveries (id) where status = 'failed';
