/** Toaster: the place where toasts appear. */
import { useEffect } from "react";
import { Toaster as Library, toast } from "sonner";
import { attachToaster } from "@/ui/toast";

export default function Toaster() {
  // The library loses toasts that are made before its component is mounted. Effects of children run first.
  useEffect(() => attachToaster(toast), []);
  return <Library position="top-right" offset={{ top: 60, right: 16 }} mobileOffset={{ top: 60, right: 12, left: 12 }} className="font-sans!" visibleToasts={3} toastOptions={{ unstyled: true }} />;
}
