-- A label names all sources of an item's words. Before, one source was kept as a sentence: only
-- the name of a program is read from it, and whatever a stranger said counts as unknown.

alter table threads rename column tainted_by to label;
alter table triggers rename column tainted_by to label;
alter table drafts rename column tainted_by to label;
alter table messages rename column tainted_by to label;
alter table nodes rename column tainted_by to label;
update threads set label = case substr(label, 1, 12) when 'the program ' then '["program:' || replace(replace(substr(label, 13), '\', ''), '"', '') || '"]' else '["unknown"]' end where label is not null;
update triggers set label = case substr(label, 1, 12) when 'the program ' then '["program:' || replace(replace(substr(label, 13), '\', ''), '"', '') || '"]' else '["unknown"]' end where label is not null;
update drafts set label = case substr(label, 1, 12) when 'the program ' then '["program:' || replace(replace(substr(label, 13), '\', ''), '"', '') || '"]' else '["unknown"]' end where label is not null;
update messages set label = case substr(label, 1, 12) when 'the program ' then '["program:' || replace(replace(substr(label, 13), '\', ''), '"', '') || '"]' else '["unknown"]' end where label is not null;
update nodes set label = case substr(label, 1, 12) when 'the program ' then '["program:' || replace(replace(substr(label, 13), '\', ''), '"', '') || '"]' else '["unknown"]' end where label is not null;

alter table memories add column label text;
alter table insights add column label text;
update memories set label = '["unknown"]' where status = 'held';
update insights set label = '["unknown"]' where status = 'held';
alter table passages add column label text;
update passages set label = '["unknown"]' where tainted = 1;
alter table passages drop column tainted;
