-- Which waits of its recipient a message ends: none, those for teammates, or all.
alter table messages add column ends_waits text not null default 'none';
update messages set ends_waits = 'all'
where seen_at is null and (kind = 'question' or sender in (select id from persons));
