/** Lanes: tasks of the same lane run one after the other, whether or not the earlier ones fail. */

const lanes = new Map<string, Promise<unknown>>();

/** Run a task after the earlier tasks of its lane. Settle as the task does. */
export function inOrder<T>(lane: string, task: () => Promise<T>): Promise<T> {
  const done = (lanes.get(lane) ?? Promise.resolve()).then(task, task);
  lanes.set(lane, done);
  return done;
}
