// The editor of notes: formatting, suggestions, added files, drafts, and the preview. The form also works without this script.
"use strict";
(() => {
  let { root, token } = document.body.dataset;
  const editor = document.querySelector(".editor");
  const { text, tags } = editor.elements;
  const find = (selector) => editor.querySelector(selector);
  const all = (selector) => [...editor.querySelectorAll(selector)];
  const said = find("[data-said]");
  const say = (words) => (said.textContent = words);
  const ask = (address, options = {}) => fetch(root + address, { ...options, headers: { Accept: "application/json", "X-KB-Token": token, ...options.headers } });
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  // The browser's own command keeps its undo; setting the value would clear it.
  const write = (field, start, end, words, from = start + words.length, to = from) => {
    field.focus();
    field.setSelectionRange(start, end);
    if (start !== end || words) {
      if (!document.execCommand(words ? "insertText" : "delete", false, words)) {
        field.setRangeText(words);
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    field.setSelectionRange(from, to);
  };

  // Formatting: each button adds its Markdown, or removes it if it is there.
  const MARKER = /^(\s*)(?:#{1,6} |[-*+] \[[ xX]\] |[-*+] |\d+[.)] )?/;
  const LINE = /^(\s*(?:(?:#{1,6}|[-*+]|\d+[.)]|>) (?:\[[ xX]\] )?)*)(.*?)(\s*)$/;
  const chosen = () => {
    let { selectionStart: start, selectionEnd: end } = text;
    const inner = text.value.slice(start, end);
    if (inner.trim()) (start += inner.length - inner.trimStart().length), (end -= inner.length - inner.trimEnd().length);
    return { start, end, inner: text.value.slice(start, end) };
  };
  const runAfter = (words, sign) => words.length - words.replace(sign[0] === "*" ? /\*+$/ : /`+$/, "").length;
  const runBefore = (words, sign) => words.length - words.replace(sign[0] === "*" ? /^\*+/ : /^`+/, "").length;
  const isWorn = (count, sign) => (sign === "*" ? count % 2 === 1 : count >= sign.length);
  const around = (sign) => () => {
    const { start, end, inner } = chosen();
    const size = sign.length;
    const outside = Math.min(runAfter(text.value.slice(0, start), sign), runBefore(text.value.slice(end), sign));
    const inside = Math.min(runBefore(inner, sign), runAfter(inner, sign));
    if (isWorn(outside, sign)) return write(text, start - size, end + size, inner, start - size, end - size);
    if (inner.length > 2 * size && isWorn(inside, sign)) return write(text, start, end, inner.slice(size, -size), start, end - 2 * size);
    const wrapped = inner.includes("\n") ? inner.split("\n").map((line) => line.replace(LINE, (_, mark, words, rest) => mark + (words && sign + words + sign) + rest)).join("\n") : sign + inner + sign;
    if (inner.includes("\n")) write(text, start, end, wrapped, start, start + wrapped.length);
    else write(text, start, end, wrapped, start + size, end + size);
  };
  const lines = (mark, isMarked) => () => {
    const { selectionStart: start, selectionEnd: end, value } = text;
    const from = value.lastIndexOf("\n", start - 1) + 1;
    const last = end > start && value[end - 1] === "\n" ? end - 1 : end;
    const to = value.indexOf("\n", last) < 0 ? value.length : value.indexOf("\n", last);
    const before = value.slice(from, to).split("\n");
    const isSet = before.every((line) => isMarked.test(line) || (before.length > 1 && !line.trim()));
    const after = before.map((line) => (before.length > 1 && !line.trim() ? line : line.replace(MARKER, isSet ? "$1" : `$1${mark}`))).join("\n");
    if (before.length > 1) return write(text, from, to, after, from, from + after.length);
    const caret = Math.max(from, end + after.length - (to - from));
    write(text, from, to, after, caret, caret);
  };
  const link = () => {
    const { start, end, inner } = chosen();
    if (!inner) return write(text, start, end, "[[]]", start + 2), suggestInText();
    if (/^(https?:\/\/|mailto:)\S+$/.test(inner)) return write(text, start, end, `[](${inner})`, start + 1);
    write(text, start, end, `[${inner}](https://)`, start + inner.length + 3, start + inner.length + 11);
  };
  const code = () => {
    const { start, end, inner } = chosen();
    if (!inner.includes("\n")) return around("`")();
    const fence = "`".repeat(Math.max(3, ...[...inner.matchAll(/`+/g)].map(([run]) => run.length + 1)));
    write(text, start, end, `${fence}\n${inner}\n${fence}`, start, start + inner.length + 2 * fence.length + 2);
  };
  const FORMATS = {
    bold: around("**"),
    italic: around("*"),
    heading: lines("## ", /^\s*#{1,6} /),
    list: lines("- ", /^\s*[-*+] (?!\[[ xX]\] )/),
    task: lines("- [ ] ", /^\s*[-*+] \[[ xX]\] /),
    link,
    code,
    files: () => chooser.click(),
  };
  const buttons = all("[data-format]");
  if (/Mac|iPhone|iPad/.test(navigator.userAgent)) {
    for (const each of buttons) each.ariaLabel = each.title = each.title.replace("Ctrl+", "⌘");
    for (const each of all("kbd")) each.textContent = each.textContent.replace("Ctrl ", "⌘");
  }
  const go = (index) => {
    const next = buttons[(index + buttons.length) % buttons.length];
    for (const each of buttons) each.tabIndex = each === next ? 0 : -1;
    next.focus();
  };
  for (const [index, button] of buttons.entries()) {
    button.tabIndex = index ? -1 : 0;
    button.addEventListener("click", () => FORMATS[button.dataset.format]());
    button.addEventListener("keydown", (event) => {
      const places = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: -1 };
      if (!(event.key in places) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      go(places[event.key]);
    });
  }
  editor.elements.title.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    text.focus();
  });
  // Enter continues a list or a quote with its next sign, and ends it in an empty entry.
  const ENTRY = /^(\s*(?:> ?)*)((?:[-*+]|(\d{1,9})([.)]))(?:\s+\[[ xX]\])?\s+|(?<=> ?))(.*)$/;
  const nextSign = (sign, number) => (number ? sign.replace(number, String(Number(number) + 1)) : sign).replace(/\[[xX]\]/, "[ ]");
  const continueList = (event) => {
    const { selectionStart: start, selectionEnd: end, value } = text;
    const from = value.lastIndexOf("\n", start - 1) + 1;
    const found = start === end && ENTRY.exec(value.slice(from, start));
    if (!found || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    const [, indent, sign, number, , words] = found;
    event.preventDefault();
    const isLast = !words.trim() && !value.slice(start).split("\n", 1)[0].trim();
    if (isLast) write(text, from, start, "");
    else write(text, start, end, `\n${indent}${nextSign(sign, number)}`);
  };
  text.addEventListener("keydown", (event) => event.key === "Enter" && !event.defaultPrevented && continueList(event));
  editor.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && find(".primary", editor).click());
  // Tab moves an entry of a list below the one above it, and Shift Tab back. If it is there already, the key leaves the field.
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Tab" || find(".suggestions:not([hidden])", editor) || event.ctrlKey || event.metaKey || event.altKey) return;
    const { selectionStart: at, selectionEnd: end, value } = text;
    const from = value.lastIndexOf("\n", at - 1) + 1;
    const [above, line] = [value.slice(0, from).trimEnd().split("\n").pop(), value.slice(from).split("\n", 1)[0]].map((each) => ENTRY.exec(each));
    if (at !== end || !line?.[2] || (event.shiftKey ? !line[1] : !above?.[2])) return;
    const depth = event.shiftKey ? Math.max(0, line[1].length - 2) : above[1].length + above[2].search(/\s/) + 1;
    if (!event.shiftKey && depth <= line[1].length) return;
    event.preventDefault();
    write(text, from, from + line[1].length, " ".repeat(depth));
    text.setSelectionRange(at + depth - line[1].length, at + depth - line[1].length);
  });
  text.addEventListener("keydown", (event) => {
    const wanted = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && { KeyB: "bold", KeyI: "italic" }[event.code];
    if (!wanted) return;
    event.preventDefault();
    FORMATS[wanted]();
  });

  // Suggestions: the names of documents after [[, and tags after # or in the field for tags.
  const inText = () => {
    const { selectionStart: start, selectionEnd: end, value } = text;
    const before = value.slice(Math.max(0, end - 200), end);
    const name = /\[\[([^[\]|#^\n]{0,100})$/.exec(before);
    const tag = /(?<!\S)#([\p{L}\p{N}_][\p{L}\p{N}_/-]{0,99})$/u.exec(before);
    if (start !== end || !(name || tag)) return null;
    if (name) return { kind: "link", query: name[1], start: end - name[0].length, end: end + (value.startsWith("]]", end) ? 2 : 0) };
    return { kind: "hashtag", query: tag[1], start: end - tag[0].length, end };
  };
  const inTags = () => {
    const { selectionEnd: at, value } = tags;
    const start = value.lastIndexOf(",", at - 1) + 1;
    const end = value.indexOf(",", at) < 0 ? value.length : value.indexOf(",", at);
    const query = value.slice(start, at).trim();
    return query ? { kind: "tag", query, start: start + value.slice(start, at).search(/\S/), end } : null;
  };
  // The place of the caret in pixels, measured in a copy of the field; of long texts, the place below the field.
  const caretIn = (field) => {
    if (field !== text || field.selectionEnd > 50_000) return { left: 0, top: field.offsetTop + field.offsetHeight };
    const copy = make("div", {}, field.value.slice(0, field.selectionEnd));
    const spot = make("span", {}, "\u200b");
    const style = getComputedStyle(field);
    for (const name of ["font", "letterSpacing", "padding", "tabSize"]) copy.style[name] = style[name];
    Object.assign(copy.style, { position: "absolute", visibility: "hidden", whiteSpace: "pre-wrap", width: `${field.clientWidth}px`, top: "0" });
    copy.append(spot);
    field.parentElement.append(copy);
    const place = { left: spot.offsetLeft, top: field.offsetTop + spot.offsetTop + spot.offsetHeight - field.scrollTop };
    copy.remove();
    return place;
  };
  const suggest = (field, asked) => {
    const list = make("ul", { role: "listbox", id: `${field.name}-suggestions`, class: "suggestions", "aria-label": "Suggestions", hidden: "" });
    const isInput = field.tagName === "INPUT";
    field.parentElement.append(list);
    field.setAttribute("aria-autocomplete", "list");
    field.setAttribute("aria-controls", list.id);
    if (isInput) field.setAttribute("role", "combobox"), field.setAttribute("aria-expanded", "false"), (field.autocomplete = "off");
    let rows = [], at = -1, latest;
    const select = (index) => {
      at = index;
      [...list.children].forEach((each, number) => each.setAttribute("aria-selected", number === at));
      if (at < 0) return field.removeAttribute("aria-activedescendant");
      field.setAttribute("aria-activedescendant", list.children[at].id);
      list.children[at].scrollIntoView({ block: "nearest" });
    };
    const draw = (found, isChosen) => {
      rows = found;
      list.hidden = !rows.length;
      list.replaceChildren(...rows.map((each, number) => make("li", { role: "option", id: `${list.id}-${number}`, "data-at": number }, make("span", {}, each.label), make("small", {}, each.detail))));
      if (isInput) field.setAttribute("aria-expanded", rows.length > 0);
      select(rows.length && isChosen ? 0 : -1);
      if (!rows.length) return;
      const { left, top } = caretIn(field);
      list.style.top = `${top}px`;
      list.style.left = `${Math.max(0, Math.min(left, field.offsetWidth - list.offsetWidth))}px`;
    };
    const close = () => {
      latest?.abort();
      if (!list.hidden) draw([]);
    };
    const offer = async () => {
      const wanted = asked();
      if (!wanted) return close();
      latest?.abort();
      const mine = (latest = new AbortController());
      try {
        const answer = await ask(`suggest?${new URLSearchParams({ kind: wanted.kind, q: wanted.query })}`, { signal: mine.signal });
        const found = answer.ok ? await answer.json() : [];
        if (mine.signal.aborted) return;
        draw(found, wanted.kind === "link");
        find("[data-found]").textContent = found.length ? `${found.length} suggestion${found.length > 1 ? "s" : ""}` : "";
      } catch {}
    };
    const accept = (index) => {
      const [wanted, row] = [asked(), rows[index]];
      close();
      if (wanted && row) write(field, wanted.start, wanted.end, row.text);
      close();
    };
    field.addEventListener("input", offer);
    field.addEventListener("blur", close);
    field.addEventListener("click", () => list.hidden || offer());
    field.addEventListener("keyup", (event) => /^(ArrowLeft|ArrowRight|Home|End)$/.test(event.key) && !list.hidden && offer());
    field.addEventListener("keydown", (event) => {
      if (list.hidden || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      const steps = { ArrowDown: 1, ArrowUp: -1 };
      if (event.key in steps) select(at < 0 ? (steps[event.key] > 0 ? 0 : rows.length - 1) : (at + steps[event.key] + rows.length) % rows.length);
      else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) accept(at);
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    }, true); // before the keys of lists, such as Enter and Tab
    list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    list.addEventListener("click", (event) => accept(Number(event.target.closest("[role=option]")?.dataset.at)));
    return offer;
  };
  const suggestInText = suggest(text, inText);
  suggest(tags, inTags);

  // Pasted, dropped and chosen files become documents of their own, which the note shows or links to.
  let adding = 0;
  const stamp = () => new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 19).replace(/\D/g, "");
  const nameOf = (file) => (/^image\.\w+$/.test(file.name) || !file.name ? `Pasted picture ${stamp()}.${file.type.split("/")[1] || "png"}` : file.name);
  const put = (before, after) => {
    const place = text.value.indexOf(before);
    if (place < 0) return;
    if (document.activeElement !== text) {
      text.setRangeText(after, place, place + before.length, "preserve");
      return text.dispatchEvent(new Event("input", { bubbles: true }));
    }
    const moved = (at) => (at <= place ? at : Math.max(place, at + after.length - before.length));
    write(text, place, place + before.length, after, moved(text.selectionStart), moved(text.selectionEnd));
  };
  const attach = async (file, waiting) => {
    const body = new FormData();
    body.append("file", file, nameOf(file));
    if (!isNew) body.append("id", editor.dataset.draft);
    const answer = await ask("attach", { method: "POST", body }).catch(() => null);
    const kept = await answer?.json().catch(() => null);
    const problem = kept?.text ? kept.error : kept?.detail || "kb does not respond. Check that it is running, then add the file again.";
    put(waiting, problem ? "" : kept.text);
    say(problem ? `${nameOf(file)}: ${problem}` : `Added ${nameOf(file)}`);
    said.classList.toggle("bad", Boolean(problem));
  };
  const attachAll = async (files, isDropped = false) => {
    const waiting = files.map((file) => `[Adding ${nameOf(file).replace(/[[\]]/g, "")} ${Math.random().toString(36).slice(2, 7)}…]`);
    // A dropped picture gets a line of its own, below the line of the cursor.
    const [start, end] = [text.selectionStart, text.selectionEnd];
    const [before, after] = [text.value.slice(0, start), text.value.slice(end)];
    const isWithin = isDropped && start === end && files.every(({ type }) => type.startsWith("image/")) && (before + after).slice(before.lastIndexOf("\n") + 1).split("\n", 1)[0].trim();
    const place = isWithin ? end + (after + "\n").indexOf("\n") : start;
    write(text, place, isWithin ? place : end, (isWithin ? "\n\n" : "") + waiting.join("\n") + (isWithin && text.value[place + 1]?.trim() ? "\n" : ""));
    adding += files.length;
    for (const [index, file] of files.entries()) {
      await attach(file, waiting[index]);
      adding -= 1;
    }
  };
  const chooser = Object.assign(document.createElement("input"), { type: "file", multiple: true, hidden: true });
  chooser.addEventListener("change", () => {
    attachAll([...chooser.files], true);
    chooser.value = "";
  });
  editor.after(chooser);
  // A text that was copied from Word or from a web page keeps its form; with Shift, it is pasted as it reads.
  let isPlain = false;
  addEventListener("keydown", (event) => (isPlain = event.shiftKey), true);
  const pasteMarked = async (html, plain) => {
    const { markdown = () => "" } = await import(`./paste.js${new URL(document.querySelector("[src*='editor.js']").src).search}`).catch(() => ({}));
    write(text, text.selectionStart, text.selectionEnd, markdown(html) || plain);
  };
  text.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    const [html, plain] = ["text/html", "text/plain"].map((kind) => event.clipboardData.getData(kind));
    if (html && plain && !isPlain) return event.preventDefault(), pasteMarked(html, plain);
    // Office programs add a picture of a copied text.
    if (!files.length || event.clipboardData.getData("text/plain")) return;
    event.preventDefault();
    attachAll(files);
  });
  addEventListener(
    "drop",
    (event) => {
      const files = [...(event.dataTransfer?.files || [])];
      if (!files.length) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      document.querySelector("#drop").hidden = true;
      const hasFolder = [...event.dataTransfer.items].some((each) => each.webkitGetAsEntry?.()?.isDirectory);
      if (hasFolder) return say("kb does not add folders to a note. Add the folder on the Add page.");
      attachAll(files, true);
    },
    true
  );

  // Drafts: the browser keeps unsaved text, each under a name of its own, so that none replaces another.
  const FIELDS = ["title", "text", "tags", "content_hash", "shown_title", "shown_tags"]; // so that saving detects changes of other people
  const place = new URL(root, location.href).pathname;
  const top = `kb-draft-${place === "/" ? "" : place}`;
  const isNew = editor.dataset.draft === "new";
  // The tab remembers that it sent the note: the parameter ?saved= could also come from a link.
  const memory = (act) => {
    try {
      return act(sessionStorage);
    } catch {}
  };
  const sent = memory((store) => store.getItem("kb-sent")) || "";
  memory((store) => store.removeItem("kb-sent"));
  const isRefused = "unsaved" in editor.dataset;
  const its = top + editor.dataset.draft;
  const isSentFrom = isRefused && sent.startsWith(`${editor.dataset.draft} `);
  const fresh = () => `${its}-${Math.random().toString(36).slice(2)}`;
  let name = isSentFrom ? sent.slice(editor.dataset.draft.length + 1) : fresh();
  const values = () => FIELDS.map((each) => editor.elements[each].value);
  const same = (one, other) => one.every((value, index) => value === other[index]);
  // Not the values at this moment: a browser that reloads a page may have put back unsaved text.
  const first = FIELDS.map((each) => (each === "text" ? text.defaultValue : editor.elements[each].defaultValue.replace(/[\r\n]/g, "")));
  const isFilled = isNew && Boolean(first[0] || location.hash.length > 1);
  let isSent = false;
  const isChanged = () => isRefused || !same(values(), first);
  const keep = () => {
    const draft = { at: Date.now(), ...Object.fromEntries(FIELDS.map((each) => [each, editor.elements[each].value])) };
    try {
      if (isChanged()) localStorage.setItem(name, JSON.stringify(draft));
      else localStorage.removeItem(name);
    } catch {
      find("[data-kept]").textContent = "This browser cannot keep a draft. Save often.";
    }
  };
  const draftAt = (key) => {
    try {
      return JSON.parse(localStorage.getItem(key));
    } catch {
      return null;
    }
  };
  const drafts = async () => {
    try {
      const open = ((await navigator.locks?.query())?.held || []).map((lock) => lock.name); // in other tabs
      const keys = Object.keys(localStorage).filter((key) => (key === its || key.startsWith(`${its}-`)) && key !== name && !open.includes(key));
      const found = keys.map((key) => ({ key, draft: draftAt(key) })).filter(({ draft }) => draft && FIELDS.some((each) => typeof draft[each] === "string"));
      const isOfPage = (draft) => !isFilled || draft.title === first[0]; // the address may already name the new note
      return found.filter(({ draft }) => isOfPage(draft) && !same(FIELDS.map((each) => draft[each] ?? ""), first)).sort((one, other) => (other.draft.at || 0) - (one.draft.at || 0));
    } catch {
      return [];
    }
  };
  const offer = document.querySelector(".draft");
  const offerDrafts = (rows) => {
    offer.inert = !rows.length; // its place stays free, so that the page holds still
    if (!rows.length) return;
    const [{ key, draft }] = rows;
    const called = draft.title || String(draft.text).trim().split("\n")[0];
    const time = draft.at ? `, ${new Date(draft.at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}` : "";
    offer.querySelector("span").textContent = `You have an unsaved draft: “${called.slice(0, 80)}”${time}`;
    offer.querySelector("[data-do=restore]").onclick = () => {
      keep();
      const present = isChanged() ? [{ key: name, draft: draftAt(name) }].filter((each) => each.draft) : [];
      if (isChanged() && !present.length) return; // this browser keeps nothing, so the text here would be lost
      for (const each of FIELDS) editor.elements[each].value = draft[each] ?? "";
      name = key;
      hold();
      offerDrafts([...present, ...rows.slice(1)]);
      changed();
      text.focus();
    };
    offer.querySelector("[data-do=discard]").onclick = () => {
      localStorage.removeItem(key);
      offerDrafts(rows.slice(1));
      text.focus();
    };
  };
  const hold = () => navigator.locks?.request(name, () => new Promise(() => {})); // until the page is left
  if (offer) drafts().then(offerDrafts);
  hold();

  // Saving: the page stays until kb has the text. It says what happens, and tries again by itself.
  const SLOW_MS = 4000, LONGEST_WAIT_MS = 30_000, LONGEST_SAVE_MS = 300_000;
  const IS_SENT_ALONE = [404, 410, 412]; // another page has to say it
  const MAY_PASS = [408, 425, 429, 500, 502, 503, 504, 507];
  let isSaving = false, wait = 2000, retry;
  const told = (words, ...links) => {
    said.replaceChildren(words, ...links);
    said.classList.toggle("bad", Boolean(words));
  };
  const leave = (go) => {
    isSent = true;
    memory((store) => (store.setItem("kb-sent", `${editor.dataset.draft} ${name}`), store.setItem("kb-sends", "true")));
    go();
  };
  const refused = async (answer) => {
    const { detail = "" } = await answer.json().catch(() => ({}));
    if (answer.status === 401 || answer.status === 403) return told(answer.status === 401 ? "Your session has ended. Your text is still here: " : `${detail} Your text is still here: `, make("a", { href: `${root}sign-in`, target: "_blank" }, "sign in"), ", then come back.");
    if (!MAY_PASS.includes(answer.status)) return told(`Not saved. ${detail}`);
    tryAgain(detail || "kb cannot save now.");
  };
  const tryAgain = (why) => {
    told(`Not saved yet. ${why} Your text stays here, and kb will try again.`);
    retry = setTimeout(save, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  };
  const save = async () => {
    if (isSaving) return;
    clearTimeout(retry);
    isSaving = true;
    const slow = setTimeout(() => say("Saving. Your text stays here until it is done."), SLOW_MS);
    const signal = AbortSignal.timeout(LONGEST_SAVE_MS);
    const answer = await fetch(editor.action, { method: "POST", body: new FormData(editor), headers: { Accept: "application/json" }, signal }).catch(() => null);
    const saved = answer?.ok ? await answer.json().catch(() => null) : null;
    clearTimeout(slow);
    isSaving = false;
    if (saved) leave(() => (location.href = root + saved.place));
    else if (!answer || answer.ok) tryAgain("kb does not respond.");
    else if (IS_SENT_ALONE.includes(answer.status)) leave(() => editor.submit());
    else await refused(answer);
  };
  // The reader comes back from signing in: the form gets the token of the new session.
  const renew = async () => {
    if (!said.querySelector("a")) return;
    const now = await fetch(`${root}sign-in`, { headers: { Accept: "application/json" } }).then((answer) => answer.json()).catch(() => null);
    if (!now?.is_signed_in) return;
    token = editor.elements.token.value = document.body.dataset.token = now.token;
    save();
  };
  addEventListener("visibilitychange", () => document.hidden || renew());
  addEventListener("focus", renew);
  addEventListener("online", () => retry && save());
  editor.addEventListener("submit", (event) => {
    event.preventDefault();
    if (adding) return say("Files are still being added. Save again when their links appear.");
    wait = 2000;
    save();
  });
  addEventListener("pageshow", () => (isSent = false));
  addEventListener("beforeunload", (event) => !isSent && isChanged() && event.preventDefault());

  const AWAY = "kb does not respond. Your text stays on this page, and in this browser.";
  const preview = find("#preview");
  let drawing;
  const show = async () => {
    if (!preview) return;
    drawing?.abort();
    drawing = new AbortController();
    try {
      const body = new FormData();
      body.append("text", text.value);
      if (!isNew) body.append("id", editor.dataset.draft);
      const answer = await ask("preview", { method: "POST", signal: drawing.signal, headers: { Accept: "text/html" }, body });
      if (said.textContent === AWAY) say("");
      if (answer.status === 401) preview.textContent = "Your session has ended. Your text stays here: save it, and kb asks you to sign in.";
      else if (answer.ok) preview.innerHTML = await answer.text();
    } catch (error) {
      if (error.name !== "AbortError" && !said.textContent) say(AWAY);
    }
  };
  let timer;
  const changed = () => {
    keep();
    clearTimeout(timer);
    timer = setTimeout(show, 200);
  };
  editor.addEventListener("input", changed);
  show();

  // Words that are typed before the fields at the top of a text would turn them into text.
  const fields = /^---\n[\s\S]*?\n---(?:\n+|$)/.exec(text.value);
  if (fields && !text.selectionEnd) text.setSelectionRange(fields[0].length, fields[0].length);

  // The text that the bookmarklet sends.
  if (isNew && location.hash.length > 1) {
    try {
      const { title, text: body } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
      editor.elements.title.value = String(title).slice(0, 500);
      text.value = String(body);
      history.replaceState(null, "", location.pathname);
      changed();
    } catch {}
  }
})();
