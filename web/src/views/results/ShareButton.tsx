/** ShareButton: opens the dialog that shares the report of a piece of work as a link. */
import { Share2 } from "lucide-react";
import { Suspense, useState } from "react";
import { lazyChunk } from "@/live/chunks";
import { IconButton } from "@/ui";

const ShareDialog = lazyChunk(() => import("@/views/results/ShareDialog"));

export function ShareButton({ node, title }: { node: string; title: string }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <>
      <IconButton label="Share" onClick={() => setIsOpen(true)}>
        <Share2 className="size-4" />
      </IconButton>
      {isOpen && (
        <Suspense>
          <ShareDialog node={node} title={title} onClose={() => setIsOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
