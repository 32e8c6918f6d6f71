-- What a reply did for the person, as it is stated under the reply.
alter table messages add column acts text not null default '[]';

-- The node that is to hear a message; null: any work of its recipient.
alter table messages add column heard_by text;
