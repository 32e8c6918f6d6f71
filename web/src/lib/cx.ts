import { type ClassValue, clsx } from "clsx";
import { twMerge } from "tailwind-merge";

/** Join class names. Of two Tailwind classes for the same property the later one wins. */
export const cx = (...classes: ClassValue[]): string => twMerge(clsx(classes));
