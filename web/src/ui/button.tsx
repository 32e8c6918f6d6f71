/** Button: by itself, so that dialogs have it without the rest of `ui`. */
import { cva, type VariantProps } from "class-variance-authority";
import type { ComponentProps } from "react";
import { cx } from "@/lib/cx";

export const buttonStyle = cva(
  "inline-flex shrink-0 items-center justify-center gap-1.5 base:rounded-sm base:font-medium base:whitespace-nowrap select-none transition-colors disabled:opacity-50 aria-disabled:opacity-50 pointer-coarse:min-h-10",
  {
    variants: {
      variant: {
        primary: "base:bg-ink base:text-paper hover:bg-ink-2 disabled:hover:bg-ink",
        outline: "border base:border-line-2 base:bg-surface hover:bg-hover",
        ghost: "base:text-ink-2 hover:bg-hover hover:text-ink",
        danger: "border base:border-fail/40 base:bg-surface base:text-fail hover:bg-fail-bg",
      },
      size: { sm: "base:h-7 base:px-2.5 base:text-xs", md: "base:h-8 base:px-3 base:text-sm", lg: "base:h-10 base:px-4 base:text-base", icon: "base:size-8 pointer-coarse:min-w-10" },
    },
    defaultVariants: { variant: "outline", size: "md" },
  },
);

export type ButtonProps = ComponentProps<"button"> & VariantProps<typeof buttonStyle>;
export function Button({ variant, size, className, type = "button", ...rest }: ButtonProps) {
  return <button type={type} data-variant={variant} className={cx(buttonStyle({ variant, size }), className)} {...rest} />;
}
