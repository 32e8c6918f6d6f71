-- The time zone that a person lives in, by its IANA name; empty: nobody has said it.
alter table persons add column zone text not null default '';
