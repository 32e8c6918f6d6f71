// Set the theme before the first paint, so that a dark page does not flash white. It is a separate file because the
// Content-Security-Policy refuses inline scripts.
(function () {
  var chosen = null;
  try { chosen = localStorage.getItem("agiraph.theme"); } catch (e) { /* no storage: use the system's theme */ }
  var dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
