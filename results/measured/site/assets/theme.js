// Light or dark: what the system prefers, or what the reader chose here. Loaded in the head, so that nothing flashes.
"use strict";
(() => {
  const KEY = "testbed-theme";
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");

  function stored() {
    try { return localStorage.getItem(KEY); } catch { return null; } // a browser may refuse storage to local files
  }
  function store(theme) {
    try { localStorage.setItem(KEY, theme); } catch { /* the choice then lasts as long as the page */ }
  }
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;

  document.addEventListener("DOMContentLoaded", () => {
    const place = document.querySelector("body > header nav") ?? document.body;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "theme-toggle";
    const show = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Show the pages in ${isDark() ? "light" : "dark"} colours`);
    };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      store(root.dataset.theme);
      show();
      document.dispatchEvent(new Event("testbed-theme"));
    });
    prefersDark.addEventListener("change", () => {
      show();
      document.dispatchEvent(new Event("testbed-theme"));
    });
    show();
    place.append(button);
  });
})();
