-- The people who use this installation. Messages and nodes name them by id already.

create table persons (
    id text primary key,
    name text not null,
    role text not null,
    created_at bigint not null
);
-- only sqlite
insert into persons (id, name, role, created_at)
    values ('human', 'human', 'owner', cast(strftime('%s', 'now') as integer) * 1000000);
-- only postgres
insert into persons (id, name, role, created_at)
    values ('human', 'human', 'owner', cast(extract(epoch from now()) as bigint) * 1000000);
-- both

-- Without `references`: SQLite adds no column that has both a foreign key and a default.
alter table teams add column owner_id text not null default 'human';
alter table passes add column person_id text not null default 'human';
alter table audit add column person_id text not null default 'human';
-- The person to whom a channel sends.
alter table channels add column person_id text not null default 'human';
