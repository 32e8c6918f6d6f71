-- The short text of a briefing, for the inbox; `text` is the whole briefing, for the conversation.
alter table messages add column summary text not null default '';

-- When the turns of a thread that was closed long ago were removed.
alter table threads add column pruned_at bigint;
create index threads_to_prune on threads (closed_at) where pruned_at is null;
