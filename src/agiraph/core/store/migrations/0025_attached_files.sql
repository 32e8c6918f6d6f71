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

-- PostgreSQL takes no NUL out of JSON, and no dump may contain one; names of today have none.
update messages set attachments = replace(attachments, '\u0000', '\ufffd')
where attachments <> '[]' and attachments <> replace(attachments, '\u0000', '\ufffd');

-- The size follows from the length of the base64. Nothing here sorts by the bytes: the files of a
-- team can be larger than the disk has room for.
-- only sqlite
insert into attached_files (message_id, place, team_id, first_id, name, size)
select m.id, f.key, m.team_id, m.id, json_extract(f.value, '$.name'),
    length(rtrim(json_extract(f.value, '$.data'), '=')) * 3 / 4
from messages m, json_each(m.attachments) f where m.attachments <> '[]';
create index attached_files_alike on attached_files (team_id, name, size, message_id)
    where place = 0;
update attached_files set first_id = coalesce((
    select f.message_id from attached_files f
    where f.place = 0 and f.team_id = attached_files.team_id and f.name = attached_files.name
        and f.size = attached_files.size and f.message_id < attached_files.message_id
        and (select attachments from messages where id = f.message_id)
            = (select attachments from messages where id = attached_files.message_id)
    order by f.message_id limit 1), message_id)
where place = 0;
drop index attached_files_alike;
update attached_files set first_id = (
    select f.first_id from attached_files f
    where f.message_id = attached_files.message_id and f.place = 0)
where place > 0;
-- only postgres
insert into attached_files (message_id, place, team_id, first_id, name, size)
select m.id, f.place - 1, m.team_id, m.first_id, f.value ->> 'name',
    length(rtrim(f.value ->> 'data', '=')) * 3 / 4
from (select id, team_id, attachments, min(id)
            over (partition by team_id, length(attachments), md5(attachments)) as first_id
    from messages where attachments <> '[]') m
    cross join lateral json_array_elements(cast(m.attachments as json))
    with ordinality f (value, place);
