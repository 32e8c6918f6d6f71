-- The label of a file in a given folder belongs to the folder's real path, not to one team: every
-- team that was given the folder reads the same words. Such a row has no team and an absolute path.
alter table file_labels add column real_path text;
-- only sqlite
update file_labels set real_path = (
    select json_extract(f.value, '$.path')
        || substr(file_labels.path, length('folders/' || json_extract(f.value, '$.name')) + 1)
    from teams t, json_each(t.folders) f
    where t.id = file_labels.team_id
        and substr(file_labels.path || '/', 1, length('folders/' || json_extract(f.value, '$.name') || '/'))
            = 'folders/' || json_extract(f.value, '$.name') || '/')
where substr(path, 1, 8) = 'folders/';
-- only postgres
update file_labels set real_path = (
    select (f.value ->> 'path')
        || substr(file_labels.path, length('folders/' || (f.value ->> 'name')) + 1)
    from teams t cross join lateral json_array_elements(cast(t.folders as json)) f (value)
    where t.id = file_labels.team_id
        and substr(file_labels.path || '/', 1, length('folders/' || (f.value ->> 'name') || '/'))
            = 'folders/' || (f.value ->> 'name') || '/')
where substr(path, 1, 8) = 'folders/';
-- both
-- Of two teams' rows for one file, a labelled one stays.
delete from file_labels where real_path is not null and exists (
    select 1 from file_labels o
    where o.real_path = file_labels.real_path and o.id <> file_labels.id
        and ((o.label is not null and file_labels.label is null)
            or ((o.label is null) = (file_labels.label is null) and o.id < file_labels.id)));
update file_labels set team_id = '', path = real_path where real_path is not null;
alter table file_labels drop column real_path;

-- Whether the person only typed an address of the host, and made no grant by hand.
alter table grants add column is_typed integer not null default 0;
