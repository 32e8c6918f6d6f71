-- What agents know, where they have it from, how it changed, and how it is found.

alter table memories add column sources text not null default '[]';
alter table memories add column contradicts text;
alter table insights add column sources text not null default '[]';
alter table insights add column contradicts text;
create index memories_held on memories (team_id, id) where status = 'held';
create index insights_held on insights (team_id, id) where status = 'held';

-- Notes that came from words nobody vouches for: a person decides whether they become files.
create table drafts (
    id text primary key,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    path text not null,
    content text not null,
    created_at bigint not null,
    author text not null,
    source_thread_id text,
    tainted_by text,
    status text not null
);
create index drafts_open on drafts (team_id, id) where status in ('held', 'accepted');

create table knowledge_changes (
    id text primary key,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    verb text not null,
    author text not null,
    created_at bigint not null,
    touched text not null,
    undone_at bigint
);
create index knowledge_changes_of_agent on knowledge_changes (agent_id, id);

create table passages (
    id {bigint} primary key,
    team_id text not null references teams (id),
    owner text not null,
    kind text not null,
    ref text not null,
    part integer not null,
    title text not null,
    text text not null,
    tainted integer not null,
    hash text not null,
    created_at bigint not null
);
create index passages_of on passages (team_id, owner, kind, ref, part);

-- only sqlite
create virtual table passage_words using fts5 (title, text, tokenize = 'ascii');
-- only postgres
create table passage_words (
    id bigint primary key references passages (id) on delete cascade,
    words tsvector not null
);
create index passage_words_found on passage_words using gin (words);
-- both
