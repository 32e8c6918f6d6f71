-- Outside clients and channels: what a chat client asked, and what a channel has received.

-- One request of a chat client over /v1, so that the same request sent again is the same message.
create table client_turns (
    id text primary key,
    digest text not null,
    conversation text not null,
    person_id text not null,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    message_id text not null references messages (id),
    created_at bigint not null,
    -- The messages to the person that the response shows before the reply, by their `seq`.
    reports_after bigint not null,
    reports_upto bigint not null
);
create index client_turns_by_digest on client_turns (digest, id);
create index client_turns_by_conversation on client_turns (conversation, id);
create index client_turns_by_message on client_turns (message_id);

-- One message that a channel brought in, by the channel's own id of it.
create table received (
    id text primary key,
    channel text not null,
    message_id text,
    received_at bigint not null
);
create index received_by_message on received (message_id) where message_id is not null;

-- Who is paired with a channel, and how far it has been read.
alter table channels add column is_two_way integer not null default 0;
alter table channels add column address text;
alter table channels add column paired_at bigint;
alter table channels add column code_digest text;
alter table channels add column code_until bigint;
alter table channels add column code_tries integer not null default 0;
alter table channels add column cursor text not null default '';
alter table channels add column dropped bigint not null default 0;
alter table channels add column agent_id text;
alter table channels add column muted_until bigint;
-- The process that reads the channel: two that read would each get half of the messages.
alter table channels add column reader text;
alter table channels add column reader_until bigint;

-- What the receiver calls the message, so that a reply to it is recognised and it can be edited.
alter table deliveries add column receipt text;
-- Whether the message there still offers an answer; whether a button there may decide.
alter table deliveries add column is_open integer not null default 0;
alter table deliveries add column may_decide integer not null default 0;
create index deliveries_by_receipt on deliveries (channel, receipt) where receipt is not null;
create index deliveries_open on deliveries (channel, due_at) where is_open = 1;
