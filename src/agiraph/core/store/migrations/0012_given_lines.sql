-- How many of a node's acceptance lines, from the first on, its agent may not change.

alter table nodes add column given_lines bigint not null default 0;
