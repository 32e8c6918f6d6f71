/** Composing: whether a key belongs to an input method that composes a character. Enter then ends the composition, and Escape gives it up. */

/** Safari sends the key that ends a composition after its end, with the code 229. */
export const isComposing = ({ isComposing, keyCode }: Pick<KeyboardEvent, "isComposing" | "keyCode">): boolean => isComposing || keyCode === 229;
