-- When a question was closed without an answer, because the work that asked has ended.
alter table messages add column closed_at bigint;
