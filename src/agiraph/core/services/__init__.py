"""Services: the verbs of the runtime, one transaction each, cut into packages by subject.

A verb is a plain function of a `Tx`. All that it writes, with the events it emits and the wakes it
asks for, commits together or not at all. No verb awaits, opens a file or starts a process.

Row locks (PostgreSQL; on SQLite one writer runs at a time). A lock is held until the commit. Verbs
take locks in this order, and skip those that they do not need:

1. the **thread** that a lease names (`threads.check_lease`). It is taken first, so that a runner
   that was fenced (another claim raised the epoch) stops before it locks or writes anything else.
2. the **agent** (`teams.lock`). A verb that gives an agent work or mail, or ends its work, takes
   it. It makes claims of one queue, mail and parking wait for each other.
3. the **nodes** (`NODES.get(…, lock=True)`): a node before those below it; for budgets, the
   outermost envelope first.
4. the **stage** of a node, to count its members and to pause or resume its clock.
5. the **research job** (`JOBS.get(…, lock=True)`), to number its evidence and to change its plan.
6. the **team**: checking for cycles of waits, growing the team, changing its status. The event log
   locks the team's row last in every transaction that emits, to number its events without a gap.

Some verbs differ. `claims.claim` locks the agent before the thread, because the agent's queue says
which thread it is. `endings.cancel`, `continuations.retry`, `continuations.extend`,
`continuations.extend_for_person` and `continuations.change_goal_budget` lock the node first,
because a person names a node; the last three go on with `continuations.resume_paid`, which locks
each node that it puts back, its agent and then its thread, and at last the triggers that the goal
pays for. `incoming.take` locks
the channel's row before all others, so that a message is taken in by one process. `frame.advance`
of a research locks the job before the agents that get work. Verbs that look for a cycle of
waits lock the team before the nodes. Where two orders meet, PostgreSQL aborts one of the
transactions, and the store runs its verb again from the start.
"""
