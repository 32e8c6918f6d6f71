/** schedule: when a batch of what the server has sent is shown. */

/** A hidden page runs no animation frames. What it receives is handled after this time. */
const HIDDEN_MS = 250;

/** Call the function at the second animation frame from now: each batch renders the message that is being written anew, and nobody reads faster than that. In a page that is hidden, or is hidden before the frame comes, call it after a short time. */
export function atSecondFrame(flush: () => void): void {
  const call = () => {
    clearTimeout(timer);
    // A page that is hidden for hours would collect one frame for each batch.
    cancelAnimationFrame(frame);
    flush();
  };
  const timer = setTimeout(call, HIDDEN_MS);
  let frame = requestAnimationFrame(() => (frame = requestAnimationFrame(call)));
}
