import { type ClassValue, clsx } from "clsx";
import { twMerge } from "tailwind-merge";

/** Class names, the later of two that contradict each other winning. */
export const cx = (...classes: ClassValue[]): string => twMerge(clsx(classes));
