-- What a team may do by itself after it has read strangers' words: strict, standard or open.
alter table teams add column trust text not null default 'standard';

-- A public node has nothing of the team's in its prompt or in reach.
alter table nodes add column is_public integer not null default 0;

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
    from_ask text,
    revoked_at bigint
);
create index grants_by_team on grants (team_id);

-- The sources of the words in a file of a team, by its path in the team's folder.
create table file_labels (
    id text primary key,
    team_id text not null,
    path text not null,
    sha256 text not null,
    label text,
    thread_id text,
    created_at bigint not null,
    confirmed_at bigint,
    confirmed_text text,
    unique (team_id, path)
);
