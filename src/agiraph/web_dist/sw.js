/** Service worker: opens the page from what it has cached (`src/live/chunks.ts`) while the server is away. */
const FILES = /^\/(assets\/.*|theme\.js|icon\.svg)$/;
/** A sign-in and a shared report need the server, and addresses of the API may be opened as pages. */
const NOT_PAGES = /^\/(api|v1|signin|shared)(\/|$)/;

addEventListener("install", () => void skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const { pathname, origin } = new URL(event.request.url);
  const isPage = event.request.mode === "navigate" && !NOT_PAGES.test(pathname);
  if (origin !== location.origin || event.request.method !== "GET" || !(isPage || FILES.test(pathname))) return;
  // Every address of the page is the same document.
  const cached = async () => (await caches.match(isPage ? "/" : pathname)) ?? Response.error();
  event.respondWith(fetch(event.request).catch(cached));
});
