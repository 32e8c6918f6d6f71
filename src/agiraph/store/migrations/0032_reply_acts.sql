-- What a reply did for the person, as it is stated under the reply.
alter table messages add column acts text not null default '[]';
