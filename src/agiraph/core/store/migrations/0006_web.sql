-- Words that nobody on the team vouches for, and research that is reported.

alter table messages add column tainted_by text;
alter table nodes add column tainted_by text;
alter table nodes add column asked_of text;
create index threads_tainted on threads (team_id) where tainted_by is not null;
