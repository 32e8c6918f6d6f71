-- Until when a team sends its owner nothing unasked; it stays in the inbox.
alter table teams add column muted_until bigint;

-- Teams that a person has deleted for good and whose rows and files are not all removed yet.
create table deletions (
    team_id text primary key,
    name text not null,
    person_id text not null,
    created_at bigint not null
);

-- What teams spent on a day before they were deleted, so that the daily limit still counts it.
alter table daily_limits add column deleted_usd double precision not null default 0;
