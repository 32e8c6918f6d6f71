/** Pages shown instead of a screen: not found, failed, signed out. */
import { Link, useRouter } from "@tanstack/react-router";
import { Compass, KeyRound, TriangleAlert } from "lucide-react";
import { errorMessage } from "@/api/client";
import { cameWithUsedLink } from "@/api/session";
import { Button, EmptyState, Logo } from "@/ui";

export function NotFound() {
  return (
    <EmptyState isPage icon={<Compass />} title="There is nothing at this address" action={<Link to="/" className="text-sm font-medium underline">Go to your teams</Link>}>
      The team may be archived, or the address may be misspelt.
    </EmptyState>
  );
}

export function ErrorPage({ error }: { error: unknown }) {
  const router = useRouter();
  return (
    <EmptyState isPage icon={<TriangleAlert />} title="This screen failed" action={<Button variant="primary" onClick={() => void router.invalidate()}>Try again</Button>}>
      {errorMessage(error)} Nothing of your teams' work is lost. If it happens again, reload the page.
    </EmptyState>
  );
}

export function SignIn() {
  const isUsed = cameWithUsedLink();
  return (
    <main className="flex h-full items-center justify-center p-6">
      <div className="w-full max-w-[420px] rounded-lg border border-line bg-surface p-8 shadow-low">
        <div className="mb-5 flex items-center gap-3">
          <span className="flex size-9 items-center justify-center rounded-md bg-ink text-paper">
            <Logo className="size-6" />
          </span>
          <h1 className="text-lg font-semibold">{isUsed ? "This link is no longer valid" : "Sign in to agiraph"}</h1>
        </div>
        <p className="text-base text-ink-2">{isUsed ? "It was used before, or is too old." : "You are not signed in, or your session has expired."} On the machine that runs the server, create a sign-in link:</p>
        <pre className="my-4 flex items-center gap-2 rounded-sm bg-sunken px-3 py-2 text-sm">
          <KeyRound className="size-4 text-ink-3" aria-hidden />
          <code>agiraph link</code>
        </pre>
        <p className="text-sm text-ink-2">
          Open the link in this browser. <code className="text-xs">agiraph up</code> also prints a link when it starts. Each link works once.
        </p>
        <Button variant="primary" className="mt-5 w-full" onClick={() => location.reload()}>
          I have signed in
        </Button>
      </div>
    </main>
  );
}
