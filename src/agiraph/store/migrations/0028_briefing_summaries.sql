-- The short text of a briefing, for the inbox; `text` is the whole briefing, for the conversation.
alter table messages add column summary text not null default '';
