// Before anything is painted: the theme the person chose, or the system's.
(function () {
  var chosen = null;
  try { chosen = localStorage.getItem("agiraph.theme"); } catch (e) { /* no storage: the system's */ }
  var dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
