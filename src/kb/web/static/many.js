// Select many rows, and the notice with its undo.
"use strict";
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const find = (selector) => document.querySelector(selector);
  let last = null;

  const draw = () => {
    const bar = find("#many");
    if (!bar) return;
    const rows = all(".pick");
    const chosen = rows.filter((each) => each.checked).length;
    const match = find("#many .match");
    const matchBox = find("#many [name=all]");
    const isAll = rows.length > 0 && chosen === rows.length;
    bar.classList.toggle("on", chosen > 0);
    find("[data-do=pick-all]").checked = isAll;
    if (match) match.hidden = !isAll;
    if (match && !isAll) matchBox.checked = false;
    const count = matchBox?.checked ? match.textContent.trim() : `${chosen} selected`;
    if (find("[data-do=picked]").textContent !== count) find("[data-do=picked]").textContent = count;
  };
  addEventListener("click", (event) => {
    const pick = event.target.closest?.(".pick");
    if (pick && event.shiftKey && last?.isConnected) {
      const rows = all(".pick");
      const [from, to] = [rows.indexOf(last), rows.indexOf(pick)].sort((one, other) => one - other);
      for (const each of rows.slice(from, to + 1)) each.checked = pick.checked;
    }
    if (pick) last = pick;
    if (event.target.matches?.("[data-do=pick-all]")) for (const each of all(".pick")) each.checked = event.target.checked;
    if (event.target.matches?.("[data-do=close-notice]")) event.target.closest(".notice").remove();
    for (const each of all(".drop-up[open]")) if (!each.contains(event.target)) each.open = false;
    if (event.target.matches?.(".pick, #many input")) draw();
  });
  addEventListener(
    "keydown",
    (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || find("dialog[open]")) return;
      const menu = find(".drop-up[open]");
      if (event.key === "Escape" && menu) {
        event.stopImmediatePropagation();
        menu.open = false;
        menu.firstElementChild.focus();
      }
      const link = document.activeElement;
      if (event.key === "x" && link.matches(".hit-link, .rows a.title")) link.closest("li").querySelector(".pick")?.click();
    },
    true
  );
  // A form that was sent is not sent a second time, unless Escape or a lost connection stopped the first.
  const SENT_MS = 10_000;
  const mayBeSent = () => all("[data-sent]").forEach((each) => delete each.dataset.sent);
  addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (event.target.dataset.sent) event.preventDefault();
    else setTimeout(mayBeSent, SENT_MS);
    event.target.dataset.sent = "1";
  });
  addEventListener("keydown", (event) => event.key === "Escape" && mayBeSent(), true);
  addEventListener("pageshow", mayBeSent);
  addEventListener("kb:shown", draw);
  addEventListener("pageshow", draw);
  addEventListener("toggle", ({ target }) => target.matches?.(".drop-up[open]") && target.querySelector("input").focus(), true);

  // A screen reader announces a text only if it appears after the page; the notice itself does not move.
  const notice = find(".notice span");
  if (notice) {
    const said = document.createElement("p");
    said.className = "unseen";
    said.setAttribute("role", "status");
    document.body.append(said);
    setTimeout(() => (said.textContent = notice.textContent), 100);
  }
})();
