-- What a person has put away in the inbox: until a moment, or for good.
alter table messages add column snoozed_until bigint;
alter table messages add column archived_at bigint;
