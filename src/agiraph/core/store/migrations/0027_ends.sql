-- Why whoever gave a task away has given it up; null: it was not given up.
alter table nodes add column given_up text;

-- The kind of evidence that an acceptance line asks for, by the line; lines without a kind are left out.
alter table nodes add column line_kinds text not null default '{{}}';
