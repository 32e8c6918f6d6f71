-- Why whoever gave a task away has given it up; null: it was not given up.
alter table nodes add column given_up text;
