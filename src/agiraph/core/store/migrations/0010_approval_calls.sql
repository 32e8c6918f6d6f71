-- An approval carries the tool call it is about as data, so that every screen can show all of it.

alter table messages add column call text;
