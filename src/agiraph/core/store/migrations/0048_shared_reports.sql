-- Links by which reports are read without signing in. Of a link's secret only the digest is stored.
create table shares (
    id text primary key,
    team_id text not null,
    node_id text not null,
    digest text not null unique,
    report_hash text not null,
    person_id text not null,
    created_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint,
    opened_at bigint,
    opens integer not null
);
create index shares_of_node on shares (node_id, created_at);

-- The sign-in link that a session was made from: who shows the link is told that it was used.
alter table passes add column link_id text;
create index passes_of_link on passes (link_id) where link_id is not null;
