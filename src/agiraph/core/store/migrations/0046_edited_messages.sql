-- Which message of a person another one takes the place of. A message is edited once: an edit of
-- the edited one names that.
alter table messages add column edits text references messages (id);
alter table messages add column edited_by text;
create unique index messages_edits on messages (edits) where edits is not null;
