-- Access tokens, the audit log, and stored responses.

alter table teams add column soul text not null default '';

create table about (
    name text primary key,
    value text not null
);

create table passes (
    id text primary key,
    kind text not null,
    name text not null,
    digest text not null unique,
    scope text not null,
    created_at bigint not null,
    expires_at bigint,
    used_at bigint,
    revoked_at bigint
);

create table audit (
    id text primary key,
    at bigint not null,
    who text not null,
    method text not null,
    path text not null,
    status integer not null
);

-- The response to a request with this idempotency key, so that a repeated request changes nothing.
create table answered (
    who text not null,
    key text not null,
    request text not null,
    status integer not null,
    body text not null,
    at bigint not null,
    primary key (who, key)
);
create index answered_by_age on answered (at);
