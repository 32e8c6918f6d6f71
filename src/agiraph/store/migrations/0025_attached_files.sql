-- The files of messages without their bytes, so that a list of them reads no bytes.
create table attached_files (
    message_id text not null references messages (id),
    place integer not null,
    team_id text not null references teams (id),
    -- The first message with the same files: one that went to several agents is stored several times.
    first_id text not null,
    name text not null,
    size bigint not null,
    primary key (message_id, place)
);
create index attached_files_of_team on attached_files (team_id, message_id);

-- The size follows from the length of the base64.
-- only sqlite
insert into attached_files (message_id, place, team_id, first_id, name, size)
select m.id, f.key, m.team_id, m.first_id, json_extract(f.value, '$.name'),
    length(rtrim(json_extract(f.value, '$.data'), '=')) * 3 / 4
from (select id, team_id, attachments,
        min(id) over (partition by team_id, attachments) as first_id
    from messages where attachments <> '[]') m,
    json_each(m.attachments) f;
-- only postgres
insert into attached_files (message_id, place, team_id, first_id, name, size)
select m.id, f.place - 1, m.team_id, m.first_id, f.value ->> 'name',
    length(rtrim(f.value ->> 'data', '=')) * 3 / 4
-- PostgreSQL takes no NUL out of JSON; names of today have none.
from (select id, team_id, attachments,
        min(id) over (partition by team_id, attachments) as first_id
    from messages where attachments <> '[]' and strpos(attachments, '\u0000') = 0) m
    cross join lateral json_array_elements(cast(m.attachments as json))
    with ordinality f (value, place);
