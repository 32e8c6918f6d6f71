// Watches a page from before its first script: records payloads that ran, forbidden elements, and the marks it has shown.
(() => {
  const ran = [];
  const found = new Set();
  const seen = new Set();
  let reported = 0;
  let wake = () => {};
  window.pwned = (n) => ran.push(n);
  for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = () => ran.push(name);
  // The page itself has some of these elements, but only in its head.
  const NEVER = "script, iframe, frame, object, embed, base, meta, link, style, template, video, audio, source, math, marquee, dialog, x-pwned, foreignObject, animate, set, use, image";
  const OUT = /^\s*(javascript|vbscript|data:text|data:image\/svg|file|blob:https?:\/\/evil)/i;

  function leads(value) {
    const to = URL.parse(value, location.href);
    return to !== null && /^(https?|wss?):$/.test(to.protocol) && to.host !== location.host;
  }
  function look(element) {
    if (element.matches(NEVER) && !document.head?.contains(element)) found.add(`<${element.localName}>`);
    for (const { name, value } of element.attributes) {
      if (/^on/i.test(name)) found.add(`${element.localName} ${name}`);
      if (/^(href|src|srcset|action|formaction|poster|background|ping|data|xlink:href)$/i.test(name)) {
        const away = leads(value) && !element.matches("[role=dialog] a, .react-flow__attribution a");
        if (OUT.test(value) || away) found.add(`${element.localName} ${name}=${value.slice(0, 60)}`);
      }
      if (name === "style" && /url\(|expression|binding/i.test(value)) found.add(`${element.localName} ${name}=${value.slice(0, 60)}`);
    }
  }
  function read(words) {
    for (const [, mark] of words.matchAll(/§([a-z]+\d+)/g)) seen.add(mark);
  }
  function all(root) {
    if (root.nodeType === Node.TEXT_NODE) return read(root.data);
    if (root.nodeType !== Node.ELEMENT_NODE) return;
    for (const element of [root, ...root.querySelectorAll("*")]) {
      look(element);
      for (const name of ["title", "aria-label"]) read(element.getAttribute(name) ?? "");
    }
    read(root.textContent);
  }
  new MutationObserver((changes) => {
    for (const change of changes) {
      if (change.type === "attributes") look(change.target);
      else if (change.type === "characterData") read(change.target.data);
      else change.addedNodes.forEach(all);
    }
    wake();
  }).observe(document, { childList: true, subtree: true, attributes: true, characterData: true });

  const picture = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));

  window.watching = {
    /** Return what ran, what was found, and the marks shown since the last report. */
    report() {
      const news = [...seen].slice(reported);
      reported = seen.size;
      return { ran, found: [...found], seen: news };
    },
    saw: (mark) => seen.has(mark),
    /** Wait until a condition holds. Playwright's own wait is blocked by the page's policy. */
    async until(holds) {
      // Not at each frame: that would draw the page again and again.
      const change = () => new Promise((done) => ((wake = done), setTimeout(done, 100)));
      for (const end = Date.now() + 30_000; !holds(); await change()) if (Date.now() > end) throw new Error(`timed out waiting for ${holds}`);
    },
    /** Expand all folded elements, and scroll through a list that draws only visible rows. */
    async walk(selector) {
      const frame = document.querySelector(selector);
      let top = -1;
      frame.scrollTop = 0;
      await picture();
      while (frame.isConnected && frame.scrollTop !== top) {
        top = frame.scrollTop;
        for (const closed of frame.querySelectorAll("[aria-expanded=false]:not([aria-haspopup]), details:not([open]) > summary")) closed.click();
        await picture();
        frame.scrollTop = top + frame.clientHeight * 0.9;
        await picture();
      }
    },
    /** Scroll to the first loaded message, and ask for those before it; return whether there is none. */
    isAtStart() {
      const thread = document.getElementById("thread");
      const earlier = [...thread.querySelectorAll("button")].find((one) => one.textContent.includes("earlier messages"));
      const isThere = thread.scrollTop === 0 && !earlier;
      thread.scrollTop = 0;
      earlier?.click();
      return isThere;
    },
    /** Return the protocol of every link, and of some links the protocol in its dialog. */
    async links() {
      const all = [...document.querySelectorAll("button.link")];
      const led = all.map((link) => new URL(link.title).protocol);
      for (const link of all.filter((_, at) => at % 8 === 0)) {
        link.click();
        // The code of dialogs is loaded with the first one.
        for (let frames = 0; frames < 600 && !document.querySelector("[role=dialog]"); frames++) await picture();
        for (const to of document.querySelectorAll("[role=dialog] a[href]")) led.push(to.protocol);
        document.querySelector("[role=dialog]")?.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
        await picture();
      }
      return led;
    },
    /** Go to an address as a link in the page would. */
    async go(to) {
      history.pushState({}, "", to);
      dispatchEvent(new PopStateEvent("popstate", { state: {} }));
      await picture();
      await picture();
    },
  };
})();
