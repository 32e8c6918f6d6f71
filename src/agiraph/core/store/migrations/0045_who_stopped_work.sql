-- Who has stopped a piece of work, and when they asked for it: the work goes on from there.
alter table nodes add column canceller_id text;
alter table nodes add column cancel_asked_at bigint;
