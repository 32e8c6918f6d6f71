/** DemoGoal: the goal and the name of a demo team. The scripted demo answers this goal with a whole story: `providers/demo_story.py` recognises it by its beginning. */
export const DEMO_GOAL = "Show me how a team works: plan a weekend trip.\nHire a teammate for the packing list, ask me where to go, and write trip.md.";

/** Return the name of a demo team that no team has yet: Demo, Demo 2, … */
export function demoName(taken: readonly string[]): string {
  const names = new Set(taken.map((name) => name.toLowerCase()));
  for (let n = 1; ; n++) {
    const name = n === 1 ? "Demo" : `Demo ${n}`;
    if (!names.has(name.toLowerCase())) return name;
  }
}
