/** Row style: the look of a row of the sidebar. */
export const rowStyle = "flex h-8 w-full items-center gap-2.5 rounded-sm px-2.5 text-sm hover:bg-hover pointer-coarse:h-11";
export const currentStyle = "bg-press font-medium hover:bg-press";
