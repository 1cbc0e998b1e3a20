// The way back to an opened result, kept searches, and a dialog for searches and commands.
"use strict";
(() => {
  const { root } = document.body.dataset;
  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const here = () => location.pathname + location.search;
  // A browser may forbid pages to remember anything, and hold things that another version of kb kept.
  const kept = (place, name, without) => {
    try {
      return JSON.parse(window[place].getItem(name)) ?? without;
    } catch {
      return without;
    }
  };
  const keep = (place, name, value) => {
    try {
      window[place].setItem(name, JSON.stringify(value));
    } catch {}
  };
  const stored = () => {
    try {
      return Object.keys(localStorage);
    } catch {
      return [];
    }
  };
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // The way back: a list remembers the link that was opened from it, and focuses it when you return.
  const opened = () => kept("sessionStorage", "kb-opened", null);
  addEventListener("click", (event) => {
    const link = event.target.closest?.("#results a, .rows a");
    if (!link || !/\/d\/\d+/.test(link.href)) return;
    keep("sessionStorage", "kb-opened", { place: here(), link: link.getAttribute("href") });
    if (find("#q")?.value) remember();
  });
  const leave = () => keep("sessionStorage", "kb-return", true);
  const wayBack = () => {
    const from = opened();
    const link = find('.back a[data-key="Escape"]');
    const top = new URL(root, location.href).pathname;
    if (!from || location.pathname !== new URL(from.link, new URL(from.place, location.href)).pathname) return;
    const back = make("input", { type: "hidden", name: "back", value: from.place.slice(top.length) });
    find('form[action$="/delete"]')?.append(back);
    if (link) {
      link.setAttribute("href", from.place);
      link.addEventListener("click", leave);
      return;
    }
    addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || event.target.matches("input, textarea, select") || find("dialog[open]")) return;
      leave();
      location.href = from.place;
    });
  };
  const goOn = () => {
    const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward" || kept("sessionStorage", "kb-return", false);
    keep("sessionStorage", "kb-return", false);
    const from = isBack && opened();
    if (!from || from.place !== here()) return;
    const link = all("#results a, .rows a").find((each) => each.getAttribute("href") === from.link);
    link?.closest("details")?.setAttribute("open", "");
    link?.focus({ preventScroll: true });
    link?.scrollIntoView({ block: "center" });
  };
  wayBack();
  goOn();

  // A page from before the last change is stale: the browser shows it again when you go back, so kb loads it again.
  const seen = Number(document.body.dataset.seen);
  const CHANGED = "kb-changed";
  const changedAt = () => Number(kept("sessionStorage", CHANGED, 0));
  if (kept("sessionStorage", "kb-sends", false)) keep("sessionStorage", CHANGED, Math.max(seen, changedAt()));
  keep("sessionStorage", "kb-sends", false);
  addEventListener("submit", (event) => event.target.method === "post" && !event.defaultPrevented && keep("sessionStorage", "kb-sends", true));
  addEventListener("pageshow", (event) => {
    const isBack = event.persisted || performance.getEntriesByType("navigation")[0]?.type === "back_forward";
    // An editor detects changes when it saves, and its text must stay.
    if (!isBack || find(".editor") || seen >= changedAt()) return;
    leave();
    location.reload();
  });

  // Kept searches: the recent ones, and the ones that were saved. They stay in this browser.
  const MOST = 10;
  const searches = (name) => [kept("localStorage", name, [])].flat().filter((each) => each?.query && String(each.place).startsWith("?"));
  const current = () => ({ query: find("#q").value.trim(), place: location.search });
  const without = (name, place) => searches(name).filter((each) => each.place !== place);
  const store = (name, rows) => keep("localStorage", name, rows);
  const remember = (search = current()) => search.query && store("kb-recent", [search, ...without("kb-recent", search.place)].slice(0, MOST));
  // What a reader leaves in this browser goes with the sign-out.
  find(".out")?.addEventListener("submit", (event) => {
    const own = stored().filter((name) => name.startsWith("kb-"));
    const drafts = own.filter((name) => name.startsWith("kb-draft-")).length;
    const saved = searches("kb-saved").length;
    const lost = [drafts && (drafts === 1 ? "a draft that isn’t saved" : `${drafts} drafts that aren’t saved`), saved && (saved === 1 ? "a saved search" : `${saved} saved searches`)].filter(Boolean);
    if (lost.length && !confirm(`Sign out? This also deletes what only this browser has: ${lost.join(" and ")}.`)) return event.preventDefault();
    for (const name of own) localStorage.removeItem(name);
    sessionStorage.clear();
  });
  find(".ask")?.addEventListener("submit", () => addEventListener("kb:shown", () => remember(), { once: true }));
  const isSaved = () => searches("kb-saved").some((each) => each.place === location.search);
  const drawSaved = () => {
    const button = find("[data-do=save-search]");
    if (!button) return;
    button.setAttribute("aria-pressed", isSaved());
    button.textContent = isSaved() ? "★ Saved" : "☆ Save search";
  };
  addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-do=save-search]")) return;
    store("kb-saved", isSaved() ? without("kb-saved", location.search) : [current(), ...searches("kb-saved")]);
    drawSaved();
  });
  addEventListener("kb:shown", drawSaved);
  drawSaved();
  const detail = (place) => [...new URLSearchParams(place)].filter(([name]) => name !== "q").map(([, value]) => value).join(", ");
  const drawKept = () => {
    const list = find("#searches ul");
    if (!list) return;
    const rows = [...searches("kb-saved"), ...searches("kb-recent")].filter((each, at, every) => every.findIndex((other) => other.place === each.place) === at);
    list.replaceChildren(
      ...rows.slice(0, MOST).map((each) => {
        const star = searches("kb-saved").some((other) => other.place === each.place) ? "★ " : "";
        return make("li", {}, make("a", { href: root + each.place, class: "title" }, star + each.query), make("span", { class: "meta" }, detail(each.place)));
      })
    );
    find("#searches").hidden = !rows.length;
  };
  drawKept();
  addEventListener("kb:shown", drawKept);
  // The documents that were opened last, which only this browser knows.
  const own = /\/d\/(\d+)$/.exec(location.pathname)?.[1];
  if (own && find("article > h1")) store("kb-opened-last", [{ id: own, title: find("article > h1").title }, ...[kept("localStorage", "kb-opened-last", [])].flat().filter((each) => each?.id !== own)].slice(0, MOST));
  const drawOpened = () => {
    const list = find("#opened ul");
    const rows = [kept("localStorage", "kb-opened-last", [])].flat().filter((each) => /^\d+$/.test(each?.id) && each.title).slice(0, 6);
    if (!list) return;
    list.replaceChildren(...rows.map(({ id, title }) => make("li", {}, make("a", { href: `${root}d/${id}`, class: "title" }, title))));
    find("#opened").hidden = !rows.length;
  };
  drawOpened();
  addEventListener("kb:shown", drawOpened);

  // The dialog: a combobox (WAI-ARIA) over searches, documents and commands.
  const PAGES = { "Today’s note": "today", Map: "map", Tags: "tags", Duplicates: "duplicates", "Recently added": "jobs", "Failed jobs": "jobs?status=failed", "Changes and undo": "changes", Folders: "folders", Backups: "backups", Doctor: "doctor", Settings: "settings", Keys: "keys", "Connect agents": "connect", Server: "server", Help: "help/" };
  const MANAGED = ["backups", "doctor", "keys"];
  const button = find(".find");
  const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
  if (isMac && button) find("kbd", button).textContent = "⌘K";
  let dialog, field, list, options, at, asked;
  const commands = () => [
    ...all("main [data-key][data-does]").filter((each) => !each.matches("input") && (each.closest(".about, .more") || (each.checkVisibility?.() ?? true))).map((each) => ({ kind: "This page", label: each.dataset.does, run: () => each.click() })),
    ...all("nav[aria-label=Main] a").map((each) => ({ kind: "Go to", label: each.dataset.does || each.textContent.trim(), href: each.href })),
    ...Object.entries(PAGES).filter(([, place]) => find("nav[data-right=admin]") || !MANAGED.includes(place)).map(([label, place]) => ({ kind: "Go to", label, href: root + place })),
  ].filter(({ label }, number, rows) => rows.findIndex((each) => each.label === label) === number);
  const select = (index) => {
    at = (index + options.length) % options.length || 0;
    all("[role=option]", list).forEach((each, number) => each.setAttribute("aria-selected", number === at));
    const chosen = list.children[at];
    field.setAttribute("aria-activedescendant", chosen ? chosen.id : "");
    chosen?.scrollIntoView({ block: "nearest" });
  };
  const draw = (rows) => {
    options = rows;
    list.replaceChildren(...rows.map((each, number) => make("li", { role: "option", id: `option-${number}`, "data-at": number }, make("span", {}, each.label), make("small", {}, each.kind))));
    field.setAttribute("aria-expanded", rows.length > 0);
    select(0);
  };
  const LONGEST = 40;
  const whereabouts = (row) => {
    const path = find(".path", row)?.title ?? find(".type", row).textContent;
    return path.length > LONGEST ? `…${path.slice(1 - LONGEST)}` : path;
  };
  const found = async (query) => {
    asked?.abort();
    const mine = (asked = new AbortController());
    try {
      const answer = await fetch(`${root}?q=${encodeURIComponent(query)}`, { signal: mine.signal, headers: { "X-KB-Fragment": "1", Accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      return mine.signal.aborted ? null : all(".hit-link", page).slice(0, 6).map((each) => ({ kind: whereabouts(each.closest("li")), label: each.textContent, href: each.getAttribute("href").replace(/^(\.\.?\/)+/, root) }));
    } catch {
      return null;
    }
  };
  const tagged = async (query) => {
    const rows = await fetch(`${root}suggest?kind=tag&q=${encodeURIComponent(query)}`).then((answer) => answer.json()).catch(() => []);
    return rows.slice(0, 3).map(({ text, label, detail }) => ({ kind: `Tag, ${detail}`, label, href: `${root}documents?tag=${encodeURIComponent(text)}` }));
  };
  const guided = async (query) => {
    const html = await fetch(`${root}help/?q=${encodeURIComponent(query)}`, { headers: { Accept: "text/html" } }).then((answer) => answer.text()).catch(() => "");
    return all(".results h2 a", new DOMParser().parseFromString(html, "text/html")).slice(0, 2).map((each) => ({ kind: "Help", label: each.textContent, href: each.getAttribute("href").replace(/^(\.\.?\/)+/, root) }));
  };
  const offer = async () => {
    const query = field.value.trim();
    const fits = (each) => each.label.toLowerCase().includes(query.toLowerCase());
    const past = [
      ...searches("kb-saved").map((each) => ({ ...each, kind: "Saved search" })),
      ...searches("kb-recent").filter((each) => !searches("kb-saved").some((other) => other.place === each.place)).map((each) => ({ ...each, kind: "Recent search" })),
    ].map((each) => ({ kind: each.kind, label: [each.query, detail(each.place)].filter(Boolean).join(" · "), href: root + each.place }));
    const rest = [...past, ...commands()].filter(fits);
    if (!query) return asked?.abort(), draw(rest);
    const place = `?q=${encodeURIComponent(query)}`;
    const search = { kind: "Search", label: `Search for “${query}”`, href: root + place, run: () => (remember({ query, place }), (location.href = root + place)) };
    const starts = (each) => each.label.toLowerCase().startsWith(query.toLowerCase()) && each.kind !== "Recent search";
    const named = rest.filter(starts);
    const others = rest.filter((each) => !starts(each));
    draw([search, ...named, ...others]);
    const [documents, tags, guide] = await Promise.all([found(query), tagged(query), guided(query)]);
    if (documents && field.value.trim() === query) {
      // A document with exactly this title is what was meant, unless a page has this name or something else was already chosen.
      const isNamed = ({ label }) => label.trim().toLowerCase() === query.toLowerCase();
      const exact = commands().some(isNamed) ? [] : documents.filter(isNamed);
      const chosen = (at === 0 && exact[0]) || options[at];
      draw([...exact, search, ...named, ...tags, ...documents.filter((each) => !exact.includes(each)), ...others, ...guide]);
      select(Math.max(0, options.indexOf(chosen)));
    }
  };
  const go = (option) => {
    if (!option) return;
    dialog.close();
    if (option.run) option.run();
    else location.href = option.href;
  };
  const prepare = () => {
    list = make("ul", { role: "listbox", id: "options", "aria-label": "Searches, documents and commands" });
    field = make("input", { type: "text", role: "combobox", "aria-controls": "options", "aria-expanded": "false", "aria-autocomplete": "list", "aria-label": "Search and commands", placeholder: "Search, or go to a page", autocomplete: "off", spellcheck: "false" });
    dialog = make("dialog", { id: "palette", "aria-label": "Search and commands" }, field, list);
    document.body.append(dialog);
    let timer;
    field.addEventListener("input", () => (clearTimeout(timer), (timer = setTimeout(offer, 30))));
    field.addEventListener("keydown", (event) => {
      const steps = { ArrowDown: 1, ArrowUp: -1 };
      if (steps[event.key]) select(at + steps[event.key]);
      else if (event.key === "Enter") go(options[at]);
      else if ((event.ctrlKey || event.metaKey) && event.key === "k") dialog.close();
      else return;
      event.preventDefault();
    });
    list.addEventListener("click", (event) => go(options[event.target.closest("[role=option]")?.dataset.at]));
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  };
  button?.addEventListener("click", () => {
    if (!dialog) prepare();
    field.value = "";
    dialog.showModal();
    field.focus();
    offer();
  });
})();
