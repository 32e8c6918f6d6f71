-- What a team may do by itself after it has read strangers' words: strict, standard or open.
alter table teams add column trust text not null default 'standard';

-- A public node has nothing of the team's in its prompt or in reach.
alter table nodes add column is_public integer not null default 0;

-- Where the words of a program's command come from, if a thread with strangers' words hired it.
alter table agents add column label text;

-- What a person has allowed for longer than one call. Without a team it holds for the whole home.
create table grants (
    id text primary key,
    kind text not null,
    pattern text not null,
    person_id text not null,
    created_at bigint not null,
    team_id text,
    until bigint,
    uses_left integer,
    used integer not null default 0,
    used_at bigint,
    from_ask text,
    revoked_at bigint
);
create index grants_by_team on grants (team_id);

-- When a person confirmed a trigger that an agent made after it had read strangers' words.
alter table triggers add column confirmed_at bigint;

-- Why a person is asked to approve a call: the way out that it takes. Null for other messages.
alter table messages add column way_out text;

-- The sources of the words in a file of a team, by its path in the team's folder.
create table file_labels (
    id text primary key,
    team_id text not null,
    path text not null,
    hash text not null,
    label text,
    thread_id text,
    created_at bigint not null,
    confirmed_at bigint,
    confirmed_text text,
    unique (team_id, path)
);

-- The links that threads with strangers' words in them have opened: a few a site are free.
create table link_fetches (
    id text primary key,
    team_id text not null,
    thread_id text not null,
    site text not null,
    created_at bigint not null
);
create index link_fetches_by_site on link_fetches (team_id, site, created_at);
create index link_fetches_by_thread on link_fetches (thread_id);

-- Nothing is held any more. A short fact of strangers' words becomes unverified: it is kept and
-- found, with its label, for 90 days from now. Other kinds wait for a person.
update insights set status = 'pending' where status = 'held' and (label is null or type <> 'fact' or length(content) > 300
    or exists (select 1 from insights gone where gone.agent_id = insights.agent_id and gone.status = 'removed' and gone.content = insights.content));
-- only sqlite
update insights set status = 'unverified', valid_until = coalesce(valid_until, (strftime('%s', 'now') + 7776000) * 1000000) where status = 'held';
update memories set status = 'unverified', valid_until = coalesce(valid_until, (strftime('%s', 'now') + 7776000) * 1000000) where status = 'held';
-- only postgres
update insights set status = 'unverified', valid_until = coalesce(valid_until, (cast(extract(epoch from now()) as bigint) + 7776000) * 1000000) where status = 'held';
update memories set status = 'unverified', valid_until = coalesce(valid_until, (cast(extract(epoch from now()) as bigint) + 7776000) * 1000000) where status = 'held';
-- both
drop index memories_held;
drop index insights_held;
create index memories_open on memories (team_id, status);
update knowledge_changes set touched = replace(touched, '"status":"held"', '"status":"pending"');
update events set type = 'knowledge.pending' where type = 'knowledge.held';
update events set data = replace(replace(data, '"held":true', '"status":"pending"'), '"held":false', '"status":"active"') where type in ('memory.written', 'insight.learned');

-- Who may find an insight: an agent, all agents of a specialist, or everyone on the team. And how
-- often, and when last, an insight was chosen for a prompt.
alter table insights add column owner text not null default '';
update insights set owner = agent_id;
alter table insights add column uses integer not null default 0;
alter table insights add column used_at bigint;
create index insights_of_owner on insights (team_id, owner, status, created_at);

-- A note that waited for a person becomes an unverified one, unless every thread reads its file as
-- the team's own word: then it still waits.
alter table drafts rename to notes;
alter table notes add column used_at bigint;
alter table notes add column filed_at bigint;
drop index drafts_open;
update notes set status = 'confirmed' where status = 'accepted';
update notes set status = 'rejected' where status = 'removed';
update notes set status = case when path = 'MEMORY.md' or substr(path, 1, 12) = 'preferences/' then 'pending' else 'unverified' end where status = 'held';
create index notes_of_agent on notes (agent_id, status);
create index notes_open on notes (team_id, status);

-- How a team reaches its person: the one channel for its questions (empty: all of them), and how
-- long it waits for an answer.
alter table teams add column channel text not null default '';
alter table teams add column answer_within_s double precision;

-- Until when a person is away: their channels are silent so long, and agents are told.
alter table persons add column away_until bigint;
