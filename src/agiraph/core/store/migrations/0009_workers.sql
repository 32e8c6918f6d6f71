-- The worker processes on this PostgreSQL. Each renews `beat_at` about once a second
-- and holds the session-level advisory lock `lock_key` as long as its connection lives.
create table workers (
    id text primary key,
    lock_key integer not null,
    host text not null,
    pid integer not null,
    started_at bigint not null,
    beat_at bigint not null,
    failing text not null
);
