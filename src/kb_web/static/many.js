// Select many rows, suggest tags for them, and the notice with its undo.
"use strict";
(() => {
  const { root } = document.body.dataset;
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
    if (event.target.matches?.("[data-do=pick-all]")) pickAll(event.target.checked);
    if (event.target.matches?.("[data-do=close-notice]")) event.target.closest(".notice").remove();
    for (const each of all(".menu[open]")) if (!each.contains(event.target)) each.open = false;
    if (event.target.matches?.(".pick, #many input")) draw();
  });
  const SENT_MS = 10_000;
  const mayBeSent = () => all("[data-sent]").forEach((each) => delete each.dataset.sent);
  addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !find("[data-sent]")) return;
      event.stopImmediatePropagation(); // the browser stops loading the next page
      mayBeSent();
    },
    true
  );

  const pickAll = (isChosen) => {
    for (const each of all(".pick")) each.checked = isChosen;
    draw();
  };
  const rowOf = (element) => element.matches(".pick, .hit-link, .rows a.title") && element.closest("li").querySelector(".pick");
  const isWriting = (element) => element.matches("textarea, select, input:not([type=radio], [type=checkbox])");
  // With Shift, the arrow keys also select: the row that they leave, and the row that they reach.
  const extend = (step) => {
    const rows = all(".pick");
    const at = rows.indexOf(rowOf(document.activeElement));
    const next = rows[at + step];
    for (const each of [rows[at], next]) if (each) each.checked = true;
    next?.closest("li").querySelector(".hit-link, a.title").focus();
    draw();
  };
  // The letter in the layout of the reader, as German keyboards swap Z and Y; other alphabets have only its place.
  const isZ = ({ key, code }) => (/^[a-z]$/i.test(key) ? key.toLowerCase() === "z" : code === "KeyZ");
  const STEPS = { ArrowDown: 1, ArrowUp: -1 };
  const KEYS = {
    Enter: ({ target }) => target.matches(".pick, #many [type=checkbox]") && (target.click(), true),
    x: ({ target }) => rowOf(target) && (rowOf(target).click(), true),
    "*": () => find(".pick") && (pickAll(true), true),
    Escape: () => find(".pick:checked") && (pickAll(false), true),
  };
  addEventListener(
    "keydown",
    (event) => {
      const menu = find(".menu[open]");
      if (event.key !== "Escape" || !menu || find("dialog[open]")) return;
      event.stopImmediatePropagation();
      menu.open = false;
      menu.firstElementChild.focus();
    },
    true
  );
  addEventListener(
    "keydown",
    (event) => {
      if (event.altKey || find("dialog[open]") || isWriting(event.target)) return;
      const undo = find(".notice [data-key=u]");
      if (event.ctrlKey || event.metaKey) return isZ(event) && !event.shiftKey && undo && (event.preventDefault(), undo.click());
      const isDone = event.shiftKey && STEPS[event.key] && rowOf(event.target) ? (extend(STEPS[event.key]), true) : KEYS[event.key]?.(event);
      if (!isDone) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    true
  );

  // Suggestions for fields of tags: each one is the whole field, which may have several tags.
  addEventListener("input", async ({ target }) => {
    if (!target.matches?.("[list=known-tags]")) return;
    const [, before = "", query] = /^(.*,\s*)?(.*)$/.exec(target.value);
    if (!query.trim()) return;
    const address = `${root}suggest?${new URLSearchParams({ kind: "tag", q: query.trim() })}`;
    const answer = await fetch(address, { headers: { Accept: "application/json" } }).catch(() => null);
    if (answer?.ok) target.list?.replaceChildren(...(await answer.json()).map((each) => new Option("", before + each.text)));
  });
  // A form that was sent is not sent a second time, unless Escape or a lost connection stopped the first.
  addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (event.target.dataset.sent) event.preventDefault();
    else setTimeout(mayBeSent, SENT_MS);
    event.target.dataset.sent = "1";
  });
  addEventListener("pageshow", mayBeSent);
  addEventListener("kb:shown", draw);
  addEventListener("pageshow", draw);
  addEventListener("toggle", ({ target }) => target.matches?.(".menu[open]") && target.querySelector(".panel :is(a, button, input)").focus(), true);

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
