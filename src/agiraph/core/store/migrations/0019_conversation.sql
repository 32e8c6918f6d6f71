-- What came before the newest messages of a conversation, in a few sentences.
create table conversation_summaries (
    id text primary key,
    team_id text not null,
    agent_id text not null,
    person_id text not null,
    text text not null,
    upto text not null,
    label text,
    node_id text,
    next_upto text not null,
    updated_at bigint not null
);

-- What an agent has looked up before it wrote a message to a person.
alter table messages add column consulted text not null default '[]';
