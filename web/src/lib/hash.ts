/** Hash: a short number for a text, as letters. It tells texts apart that are not made to collide. */
export function hash(text: string): string {
  let sum = 5381;
  for (let at = 0; at < text.length; at++) sum = ((sum * 33) ^ text.charCodeAt(at)) >>> 0;
  return sum.toString(36);
}
