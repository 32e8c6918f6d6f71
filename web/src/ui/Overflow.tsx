/** Overflow: a row of links of which as many are shown as fit. The others are in a menu at its end. */
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { cx } from "@/lib/cx";

interface Props {
  items: { key: string; link: ReactNode }[];
  className?: string;
  /** Return the menu, which gets the keys of what is not shown. */
  menu: (hidden: readonly string[]) => ReactNode;
}

export function Overflow({ items, className, menu }: Props) {
  const row = useRef<HTMLUListElement>(null);
  const [{ shown, gap }, setFit] = useState({ shown: items.length, gap: 0 });
  const keys = items.map(({ key }) => key);
  const order = keys.join(" ");
  useLayoutEffect(() => {
    const list = row.current!;
    // What does not fit wraps below the visible line.
    const measure = () => {
      const places = [...list.children] as HTMLElement[];
      const wrapped = places.findIndex((one) => one.offsetTop > places[0]!.offsetTop);
      const fit = wrapped < 0 ? places.length : wrapped;
      const last = places[fit - 1];
      setFit({ shown: fit, gap: last ? Math.max(0, list.getBoundingClientRect().right - last.getBoundingClientRect().right) : 0 });
    };
    measure();
    const observer = new ResizeObserver(measure);
    for (const one of [list, ...list.children]) observer.observe(one);
    return () => observer.disconnect();
  }, [order]);
  return (
    <>
      <ul ref={row} className={cx("flex min-w-0 flex-wrap overflow-hidden", className)}>
        {items.map(({ key, link }, at) => (
          <li key={key} className={cx("flex h-full", at >= shown && "invisible")}>
            {link}
          </li>
        ))}
      </ul>
      {/* Beside the last link that is shown. */}
      <span className="flex shrink-0" style={{ transform: `translateX(-${gap}px)` }}>
        {menu(keys.slice(shown))}
      </span>
    </>
  );
}
