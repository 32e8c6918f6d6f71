/** SignInDevice: a sign-in link for another device, as a QR code and as text, which works once and for a short time. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { encode } from "uqr";
import { api, type Schemas, unwrap } from "@/api/client";
import { clockTime, duration } from "@/lib/format";
import { CopyField } from "@/parts/CopyField";
import { useNow } from "@/parts/RelativeTime";
import { Button, Dialog, DialogActions, Loading, Problem } from "@/ui";

const MINUTES = 5;
const ASK_MS = 2_000;
type Link = Schemas["LinkView"];

const revoke = (token: string) => unwrap(api.DELETE("/api/tokens/{token}", { params: { path: { token } } }));

export default function SignInDevice({ onClose }: { onClose: () => void }) {
  const make = useMutation({ mutationFn: () => unwrap(api.POST("/api/tokens/link", { params: { query: { minutes: MINUTES } } })) });
  const { mutate } = make;
  useEffect(() => mutate(), [mutate]);
  const link = make.data;
  // A link that is no longer on the screen is of no use to its person. One that was used is used up.
  useEffect(() => (link ? () => void revoke(link.id).catch(() => {}) : undefined), [link]);
  return (
    <Dialog open onOpenChange={(open) => open || onClose()} title="Sign in another device" description="The device is signed in as you, with all that you may do, until it is signed out.">
      <Problem of={make.error} />
      {!link && !make.error && <Loading label="Making a sign-in link …" />}
      {link && <div className="mb-5">{link.url ? <Code key={link.id} link={link} onAgain={mutate} /> : <NoWay />}</div>}
      <DialogActions>
        <Button onClick={onClose}>Close</Button>
      </DialogActions>
    </Dialog>
  );
}

function Code({ link, onAgain }: { link: Link; onAgain: () => void }) {
  const now = useNow();
  const leftMs = Math.max(0, new Date(link.expires_at ?? 0).getTime() - now);
  const { data: use, error } = useQuery({
    queryKey: ["sign-in link", link.id],
    queryFn: () => unwrap(api.GET("/api/tokens/links/{link}", { params: { path: { link: link.id } } })),
    refetchInterval: ({ state }) => (state.data?.used_at || leftMs === 0 ? false : ASK_MS),
  });
  if (use?.used_at) return <SignedIn at={use.used_at} session={use.session} />;
  if (leftMs === 0)
    return (
      <div role="status" className="space-y-3 text-sm">
        <p>This code is too old. Nobody has signed in with it.</p>
        <Button variant="primary" onClick={onAgain}>
          Make a new code
        </Button>
      </div>
    );
  return (
    <div className="space-y-4 text-sm">
      <p>Point the camera of the other device at this code, or open the link there.</p>
      <QrCode text={link.url} label="QR code of the sign-in link" />
      <CopyField label="Sign-in link" text={link.url} />
      <p className="text-ink-2">
        It works once, for <span className="tabular">{duration(leftMs)}</span> more. Whoever opens it first is signed in: show it to nobody.
      </p>
      <Problem of={error} />
    </div>
  );
}

function SignedIn({ at, session }: { at: string; session: Schemas["TokenView"] | null }) {
  const signOut = useMutation({ mutationFn: revoke });
  const what = session?.name === "phone" ? "A phone" : "Another browser";
  return (
    <div role="status" className="space-y-3 text-sm">
      <p>
        <strong>{signOut.isSuccess || !session ? `${what} signed in at ${clockTime(at)}, and was signed out.` : `${what} signed in at ${clockTime(at)}.`}</strong> Operations lists all sessions under Tokens and sessions.
      </p>
      <Problem of={signOut.error} />
      {session && !signOut.isSuccess && (
        <Button variant="danger" disabled={signOut.isPending} onClick={() => signOut.mutate(session.id)}>
          Sign it out
        </Button>
      )}
    </div>
  );
}

/** Says that this page is open at an address of this machine alone. */
function NoWay() {
  return (
    <div role="note" className="space-y-2 rounded-md border border-wait-line bg-wait-bg p-3 text-sm">
      <p>
        Another device cannot reach this server at <code>{location.origin}</code>: there, that address leads to the device itself.
      </p>
      <p>
        Name <code>certificate</code> and <code>key</code>, or the https address of your reverse <code>proxy</code>, under <code>[server]</code> in <code>agiraph.toml</code>, start the server again, and open this page with an address that the other device can reach.
      </p>
    </div>
  );
}

/** A QR code is black on white in every theme: many cameras read no other. */
function QrCode({ text, label }: { text: string; label: string }) {
  const { size, data } = encode(text, { ecc: "M", border: 4 });
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return (
    <svg role="img" aria-label={label} viewBox={`0 0 ${size} ${size}`} shapeRendering="crispEdges" className="mx-auto block w-full max-w-64 rounded-md">
      <path fill="#fff" d={`M0 0h${size}v${size}h-${size}z`} />
      <path fill="#000" d={dark.join("")} />
    </svg>
  );
}
