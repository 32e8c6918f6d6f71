/** Row style: the look of a row of the sidebar. */
export const rowStyle = "flex h-8 w-full items-center base:gap-2.5 rounded-sm base:px-2.5 base:text-sm hover:base:bg-hover pointer-coarse:h-11";
export const currentStyle = "bg-press font-medium hover:bg-press";
