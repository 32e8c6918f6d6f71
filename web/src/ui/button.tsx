/** Button: by itself, so that dialogs have it without the rest of `ui`. */
import { cva, type VariantProps } from "class-variance-authority";
import type { ComponentProps } from "react";
import { cx } from "@/lib/cx";

export const buttonStyle = cva(
  "inline-flex shrink-0 items-center justify-center gap-1.5 rounded-sm font-medium whitespace-nowrap select-none transition-colors disabled:opacity-50 aria-disabled:opacity-50 pointer-coarse:min-h-10",
  {
    variants: {
      variant: {
        primary: "bg-ink text-paper hover:bg-ink-2 disabled:hover:bg-ink",
        outline: "border border-line-2 bg-surface hover:bg-hover",
        ghost: "text-ink-2 hover:bg-hover hover:text-ink",
        danger: "border border-fail/40 bg-surface text-fail hover:bg-fail-bg",
      },
      size: { sm: "h-7 px-2.5 text-xs", md: "h-8 px-3 text-sm", lg: "h-10 px-4 text-base", icon: "size-8 pointer-coarse:min-w-10" },
    },
    defaultVariants: { variant: "outline", size: "md" },
  },
);

export type ButtonProps = ComponentProps<"button"> & VariantProps<typeof buttonStyle>;
export function Button({ variant, size, className, type = "button", ...rest }: ButtonProps) {
  return <button type={type} data-variant={variant} className={cx(buttonStyle({ variant, size }), className)} {...rest} />;
}
