/** Participants: the two senders and recipients of messages that are not agents. The server uses the same ids. */

/** The id under which the person sends and receives messages. */
export const HUMAN = "human";
/** The id of agiraph itself, as the sender of notices. */
export const SYSTEM = "system";
