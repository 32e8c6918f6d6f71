/** FoundWords: the words of the search that led to a page. The page marks them and scrolls to the first one. */

/** The address that the search opened, and its words. Marks are for that page only, not for the next one. */
let opened = { href: "", words: [] as string[] };

export function rememberWords(href: string, words: string[]): void {
  opened = { href, words };
}

/** Return the words that were searched for, if the search opened this page. */
export function searchedWords(): string[] {
  // The browser and the router encode some characters in different ways.
  const plain = (href: string) => decodeURI(new URL(href, location.origin).href);
  return plain(opened.href) === plain(location.pathname + location.search) ? opened.words : [];
}

/** Return the places of all words in a text: the first character and the one after the last. */
export function wordPlaces(text: string, words: readonly string[]): [number, number][] {
  if (words.length === 0) return [];
  const escaped = [...words].sort((one, other) => other.length - one.length).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return [...text.matchAll(new RegExp(escaped.join("|"), "gi"))].map((match) => [match.index, match.index + match[0].length]);
}

const MAX_MARKS = 500;
/** A page may load what shows its text; look for the words during this many frames. */
const MAX_FRAMES = 60;

/** Mark the words in an element and scroll to the first one, as soon as the element shows it. */
export function showWords(root: () => Element | null | undefined, words: string[], frames = MAX_FRAMES): void {
  if (words.length === 0 || frames === 0) return;
  const ranges = rangesOf(root(), words);
  if (!ranges[0]) return void requestAnimationFrame(() => showWords(root, words, frames - 1));
  // Marked without a change of the elements: React owns them.
  if ("highlights" in CSS) CSS.highlights.set("found", new Highlight(...ranges));
  scrollTo(ranges[0]);
}

function rangesOf(root: Element | null | undefined, words: string[]): Range[] {
  const ranges: Range[] = [];
  if (!root) return ranges;
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && ranges.length < MAX_MARKS) {
    for (const [start, end] of wordPlaces(texts.currentNode.nodeValue ?? "", words)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, start);
      range.setEnd(texts.currentNode, end);
      ranges.push(range);
    }
  }
  return ranges;
}

/** Scroll every box around a range that does not show it. An element cannot be scrolled to: it may be a text of many pages. */
function scrollTo(range: Range): void {
  for (let box = range.startContainer.parentElement; box; box = box.parentElement) {
    if (box.scrollHeight <= box.clientHeight || !/auto|scroll/.test(getComputedStyle(box).overflowY)) continue;
    const word = range.getBoundingClientRect();
    const frame = box.getBoundingClientRect();
    if (word.top < frame.top || word.bottom > frame.bottom) box.scrollTop += word.top - frame.top - frame.height / 3;
  }
}
