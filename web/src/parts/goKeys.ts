/** GoKeys: shortcuts of two keys, `g` and then a screen's key. Every listener for single keys asks whether a key is such a second one. */

/** How long `g` waits for the second key. */
const WAIT_MS = 1_200;
let pressedAt = -Infinity;
let last: { event: KeyboardEvent | null; follows: boolean } = { event: null, follows: false };

/** Wait for the second key. */
export function beginGo(): void {
  pressedAt = Date.now();
}

/** Whether the key comes after `g`. All listeners get the same answer for an event, whichever asks first. */
export function followsGo(event: KeyboardEvent): boolean {
  if (last.event !== event) {
    last = { event, follows: Date.now() - pressedAt < WAIT_MS };
    pressedAt = -Infinity;
  }
  return last.follows;
}
