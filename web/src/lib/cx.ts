/** Join class names. A class that another one of the same call may replace is written `base:…` (see `styles.css`). */
export { clsx as cx } from "clsx";
