// Search while you type, dropped files, and drafts. The web interface also works without this script.
"use strict";
(() => {
  const { root, token } = document.body.dataset;

  // An input method composes a text with letters, Enter and Escape. Until the text is done, no script of a page hears of it.
  // Keyboards of Android compose every word, so that there a text counts at once.
  const isAndroid = /Android/.test(navigator.userAgent);
  let isComposed = false;
  const silence = (event) => event.stopImmediatePropagation();
  addEventListener("compositionstart", () => (isComposed = true), true);
  addEventListener("compositionend", (event) => ((isComposed = false), event.target.dispatchEvent(new Event("input", { bubbles: true }))), true);
  for (const kind of ["keydown", "keyup"]) addEventListener(kind, (event) => (isComposed || event.isComposing || event.keyCode === 229) && silence(event), true);
  addEventListener("input", (event) => event.isComposing && !isAndroid && silence(event), true);
  addEventListener("submit", (event) => isComposed && (event.preventDefault(), silence(event)), true);

  const find = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const say = (text) => {
    const status = find("#status");
    status.textContent = text;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => (status.textContent = ""), 4000);
  };
  // A browser may forbid pages to remember anything.
  const memory = (name) => ({
    keep(value) {
      try {
        localStorage.setItem(name, value);
      } catch {}
    },
    kept() {
      try {
        return localStorage.getItem(name);
      } catch {
        return null;
      }
    },
  });
  const ask = (address, options = {}) =>
    fetch(address, { ...options, headers: { "X-KB-Fragment": "1", Accept: "text/html", ...options.headers } });
  const parsed = (html) => new DOMParser().parseFromString(html, "text/html");
  const swap = (selector, fresh) => {
    const [here, there] = [find(selector), find(selector, fresh)];
    if (here && there) here.replaceChildren(...there.childNodes);
  };

  // Search while you type: only the last query counts, and the address always matches the results shown.
  const form = find(".ask");
  const field = find("#q");
  let pending = null;
  let isBusy = false;
  const address = () => {
    const pairs = [...new FormData(form)].filter(([, value]) => value);
    return pairs.length ? "?" + new URLSearchParams(pairs) : "./";
  };
  // A person may already select the results of the first words when those of the last word come.
  const swapKeepingRows = (fresh) => {
    const picked = new Set(all(".pick:checked").map((each) => each.value));
    const { pathname } = document.activeElement.matches(".hit-link") ? document.activeElement : {};
    for (const part of ["#results", "#facets", "#groups"]) swap(part, fresh);
    for (const each of all(".pick")) each.checked = picked.has(each.value);
    if (pathname) (all(".hit-link").find((each) => each.pathname === pathname) || field).focus();
  };
  const search = async (place, isNew = false) => {
    pending?.abort();
    const mine = (pending = new AbortController());
    isBusy = true;
    try {
      const answer = await ask(place, { signal: mine.signal });
      const html = await answer.text();
      if (mine.signal.aborted) return;
      if (answer.status === 401) return location.reload();
      const fresh = parsed(html);
      swapKeepingRows(fresh);
      document.title = fresh.title;
      find("main").className = find("main", fresh).className;
      history[isNew ? "pushState" : "replaceState"](null, "", place);
      window.dispatchEvent(new Event("kb:shown"));
    } catch (error) {
      if (error.name !== "AbortError") say("kb does not respond. Check that it is running.");
    } finally {
      if (pending === mine) isBusy = false;
    }
  };
  if (form) {
    let timer;
    form.addEventListener("input", (event) => {
      clearTimeout(timer);
      timer = setTimeout(() => search(address()), event.target === field && isBusy ? 60 : 0);
    });
    let entered;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(timer);
      search(address(), address() !== entered);
      entered = address();
    });
    addEventListener("popstate", () => location.reload());
    // Passages or documents: the choice is kept for the next search.
    const choice = memory("kb-by");
    form.addEventListener("change", (event) => event.target.name === "by" && choice.keep(event.target.value));
    if (!location.search && choice.kept() === "passage") find("[name=by][value=passage]").checked = true;
    if (field.value) field.setSelectionRange(field.value.length, field.value.length);
  }

  // The panel with all filters closes when you click elsewhere.
  const panel = find(".filter");
  addEventListener("click", (event) => {
    if (event.target.closest('[href="#all-tag"]')) {
      event.preventDefault();
      panel.open = true;
      find("#all-tag").focus();
    } else if (panel && !panel.contains(event.target)) panel.open = false;
  });

  // Keyboard shortcuts: the ones that elements declare, and the arrow keys for results.
  const isRow = (element) => element.matches(".pick, .rows a.title");
  const isNowhere = () => document.activeElement === document.body;
  const goesToRow = (key) => find(".rows .pick") && (isRow(document.activeElement) || (isNowhere() && key === "ArrowDown"));
  const isBelowTop = (element) => element.getBoundingClientRect().top > find(".top").offsetHeight;
  const move = (step) => {
    const links = all(find(".rows .pick") || isRow(document.activeElement) ? ".rows a.title" : ".hit-link");
    const active = document.activeElement;
    const at = links.indexOf(active.matches(".pick") ? find("a.title", active.closest("li")) || active : active);
    if (step < 0 && at <= 0) return field?.focus();
    if (isNowhere() && !field) return (links.find(isBelowTop) || links[0])?.focus();
    links[Math.min(at + step, links.length - 1)]?.focus();
  };
  const isWriting = (element) => element.matches("textarea, select, input:not([type=radio]):not([type=checkbox])");
  // The bar for selected rows is not always there; what a line or a menu hides can be used by its key.
  const isShown = (element) => element.closest(".about, .more") || (element.checkVisibility?.() ?? true);
  const showKeys = () => {
    const list = find("#keys dl");
    const rows = all("[data-key]").filter(isShown).map((each) => [each.dataset.with ? `Ctrl ${each.dataset.key.toUpperCase()}` : each.dataset.key, each.dataset.does]);
    if (find(".hit-link")) rows.push(["↓ ↑", "Go to a result"], ["Enter", "Open the result"]);
    if (find(".rows .pick")) rows.push(["↓ ↑", "Go to a row"]);
    if (find(".pick")) rows.push(["x", "Select the row with this link, to change several at once"], ["Shift ↓ ↑", "Select this row and the next"], ["*", "Select all rows"], ["Escape", "Clear the selection"]);
    if (find(".notice [data-key]")) rows.push(["Ctrl Z", "Undo the last action"]);
    if (field) rows.push(["Escape", "Leave the search field, or go back to it"]);
    list.replaceChildren(
      ...rows.flatMap(([key, does]) => {
        const [term, said, sign] = [document.createElement("dt"), document.createElement("dd"), document.createElement("kbd")];
        sign.textContent = key;
        term.append(sign);
        said.textContent = does;
        return [term, said];
      })
    );
    find("#keys").showModal();
  };
  const act = (element) => {
    const folded = element.closest("details.about");
    if (folded && element.matches("input")) folded.open = true;
    element.matches("input") ? (element.focus(), element.select()) : element.click();
  };
  addEventListener("keydown", (event) => {
    if (event.altKey || find("dialog[open]")) return;
    if (event.ctrlKey || event.metaKey) {
      // The letter of the key, also in a layout such as the Russian one.
      const isKey = ({ dataset: { key } }) => key === event.key || `Key${key.toUpperCase()}` === event.code;
      const wanted = !event.shiftKey && all("[data-with=ctrl]").find(isKey);
      if (wanted) {
        event.preventDefault();
        wanted.click();
      }
      return;
    }
    const writing = isWriting(event.target);
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (find(".hit-link, .rows a.title:focus") || goesToRow(event.key)) && (!writing || event.target === field)) {
      event.preventDefault();
      return move(event.key === "ArrowDown" ? 1 : -1);
    }
    if (event.key === "Escape" && panel?.open) return (panel.open = false), find("summary", panel).focus();
    if (event.key === "Escape" && event.target === field && !field.value) return field.blur();
    if (event.key === "Escape" && field && event.target !== field) return field.focus();
    if (event.key === "Escape" && writing && event.target !== field) return event.target.blur();
    if (writing) return;
    if (event.key === "?") return event.preventDefault(), showKeys();
    if (event.key === "/" && !field) return event.preventDefault(), (location.href = root);
    const wanted = all(`[data-key="${CSS.escape(event.key)}"]:not([data-with])`).find(isShown);
    if (wanted) {
      event.preventDefault();
      act(wanted);
    }
  });
  const sign = find(".keys");
  sign.addEventListener("click", showKeys);

  // Ask for confirmation before sending a form whose button, or which itself, declares a question.
  addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm || event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });

  // Times are in the reader's time zone. Without this script they are in UTC, and say so.
  const MOMENT = /\d{4}-\d\d-\d\d \d\d:\d\d UTC/g;
  const DAY = /\d{1,2} [A-Z][a-z]{2} \d{4}/;
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const two = (number) => String(number).padStart(2, "0");
  const local = (moment) => {
    const at = new Date(moment.replace(" ", "T").replace(" UTC", "Z"));
    return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
  };
  const showLocal = (within) => {
    for (const each of all("time, .reason, .says", within)) {
      const at = new Date(each.dateTime);
      const isInstant = each.title?.replace(MOMENT, "") === "" && each.title; // other dates belong to documents
      if (isInstant && DAY.test(each.textContent)) each.textContent = each.textContent.replace(DAY, `${at.getDate()} ${MONTHS[at.getMonth()]} ${at.getFullYear()}`);
      if (!each.children.length && each.textContent.match(MOMENT)) {
        each.style.minHeight = `${each.offsetHeight}px`; // a shorter text must not move the next rows
        each.textContent = each.textContent.replace(MOMENT, local);
      }
      if (each.title) each.title = each.title.replace(MOMENT, local);
    }
  };
  showLocal(document);
  document.cookie = `kb_zone=${-new Date().getTimezoneOffset()}; path=${new URL(root, location.href).pathname}; max-age=31536000; samesite=strict`;
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes) for (const each of addedNodes) if (each.nodeType === 1) showLocal(each);
  }).observe(document.body, { childList: true, subtree: true });

  // The day of a note is the reader's, not the server's.
  addEventListener("click", ({ target }) => {
    const link = target.closest?.("a[href$='today']");
    if (link) link.href += `?day=${local(new Date().toISOString().slice(0, 16) + " UTC").slice(0, 10)}`;
  });

  // Copying.
  // Browsers have a clipboard only for HTTPS and this machine; from other machines of a network, a field does it.
  const copy = async (text) => {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.body.appendChild(document.createElement("textarea"));
    field.value = text;
    field.select();
    document.execCommand("copy");
    field.remove();
  };
  const fetched = async (place) => {
    const answer = await fetch(place).catch(() => null);
    return answer?.ok ? answer.text() : null;
  };
  addEventListener("click", async (event) => {
    if (event.target.closest?.("[data-do=print]")) {
      event.target.closest("details")?.removeAttribute("open");
      return print();
    }
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const what = button.dataset.copy;
    const text = what === "link" ? location.href : what === "before" ? button.previousElementSibling.textContent : await fetched(what);
    if (text === null) return say("kb does not respond, so nothing was copied");
    const isCopied = await Promise.resolve(copy(text)).then(() => true, () => false);
    button.closest("details")?.removeAttribute("open");
    say(isCopied ? "Copied" : "The browser doesn’t let kb copy this");
  });

  // A saved note: its draft is no longer needed. A screen reader announces a text only if it appears after the page.
  const saved = new URLSearchParams(location.search).get("saved");
  if (saved) {
    history.replaceState(null, "", location.pathname);
    try {
      const sent = sessionStorage.getItem("kb-sent") || "";
      sessionStorage.removeItem("kb-sent");
      if (sent.startsWith(`${saved} `)) {
        localStorage.removeItem(sent.slice(saved.length + 1));
        if (!find(".notice")) setTimeout(() => say("Saved"), 100);
      }
    } catch {}
  }

  // A ticked task stays where it was on the screen, although the next page has a notice above it.
  addEventListener("submit", ({ target, submitter }) => {
    if (target.id !== "tick") return;
    try {
      sessionStorage.setItem("kb-task", JSON.stringify([submitter.id, submitter.getBoundingClientRect().top]));
    } catch {}
  });
  const keepTask = () => {
    try {
      const [id, top] = JSON.parse(sessionStorage.getItem("kb-task") || "[]");
      const task = document.getElementById(id);
      if (task) scrollBy({ top: task.getBoundingClientRect().top - top, behavior: "instant" });
    } catch {}
  };
  keepTask();
  addEventListener("load", () => {
    keepTask();
    try {
      sessionStorage.removeItem("kb-task");
    } catch {}
  });

  // Add files and folders that are dropped, chosen or pasted; at most two uploads at once.
  const queue = [];
  let sending = 0;
  const row = (name) => {
    const [item, state, title, progress, reason] = ["li", "span", "span", "progress", "p"].map((each) => document.createElement(each));
    state.className = "state";
    state.textContent = "queued";
    title.className = "title";
    title.textContent = name;
    progress.max = 1;
    progress.value = 0;
    progress.setAttribute("aria-label", `Progress of ${name}`);
    reason.className = "reason";
    item.append(state, title, progress, reason);
    find("#sent").append(item);
    return { item, state, title, progress, reason };
  };
  const draw = (line, status, part, reason) => {
    line.state.className = `state ${status}`;
    line.item.className = status;
    line.state.textContent = status;
    line.progress.hidden = status === "done" || status === "failed";
    if (part !== undefined) line.progress.value = part;
    line.reason.textContent = reason || "";
  };
  const upload = (file, path, line) =>
    new Promise((resolve) => {
      const body = new FormData();
      body.append("file", file, file.name);
      if (path) body.append("source_path", path);
      body.append("tags", find(".adding [name=tags]")?.value || "");
      const request = new XMLHttpRequest();
      request.open("POST", `${root}add`);
      request.setRequestHeader("X-KB-Token", token);
      request.setRequestHeader("Accept", "application/json");
      request.responseType = "json";
      request.upload.onprogress = (event) => event.lengthComputable && draw(line, "uploading", event.loaded / event.total);
      request.onloadend = () => resolve(request.response || { error: "kb did not respond. Check that it is running.", again: true });
      request.send(body);
    });
  const follow = async (id, line) => {
    for (;;) {
      const answer = await fetch(`${root}jobs/${id}`, { headers: { Accept: "application/json" } }).catch(() => null);
      const job = answer?.ok ? await answer.json() : null;
      if (job) draw(line, job.status, job.progress, job.error || (job.existed && "kb already had this file."));
      if (job?.status === "done") {
        const link = document.createElement("a");
        link.className = "title";
        link.href = `${root}d/${job.document_id}`;
        link.textContent = line.title.textContent;
        line.title.replaceWith(link);
      }
      if (!answer || answer.status === 404 || job?.status === "done" || job?.status === "failed") return job;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  };
  const again = (line, file, path) => {
    const button = document.createElement("button");
    button.className = "small";
    button.textContent = "Try again";
    button.addEventListener("click", () => (button.remove(), queue.push([file, path, line]), next()));
    line.item.append(button);
  };
  const next = async () => {
    if (sending >= 2 || !queue.length) return;
    sending += 1;
    const [file, path, line] = queue.shift();
    draw(line, "uploading", 0);
    const answer = await upload(file, path, line);
    sending -= 1;
    next();
    const job = answer.id ? await follow(answer.id, line) : null;
    if (!answer.id) draw(line, "failed", 1, answer.error || answer.detail);
    if (answer.again || job?.remedy === "retry") again(line, file, path);
  };
  const take = (files) => {
    for (const [file, path] of files) queue.push([file, path, row(path || file.name)]);
    for (let each = 0; each < 2; each++) next();
  };
  const walk = async (entry, path = "") => {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject)).catch(() => null);
      return file ? [[file, path ? path + file.name : ""]] : [];
    }
    const reader = entry.createReader();
    const found = [];
    for (;;) {
      const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject)).catch(() => []);
      if (!part.length) return found;
      for (const each of part) if (!each.name.startsWith(".")) found.push(...(await walk(each, `${path}${entry.name}/`)));
    }
  };
  const veil = find("#drop");
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  const keepFiles = async (files) => {
    if (!find("#sent")) {
      const answer = await ask(`${root}add`);
      if (!answer.ok) return (location.href = `${root}add`);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      find("main").replaceWith(find("main", fresh));
      history.pushState(null, "", `${root}add`);
      document.title = fresh.title;
      document.body.dataset.root = root;
      prepareAdding();
    }
    take(files);
  };
  addEventListener("dragover", (event) => hasFiles(event) && (event.preventDefault(), (veil.hidden = false)));
  addEventListener("dragleave", (event) => !event.relatedTarget && (veil.hidden = true));
  addEventListener("drop", async (event) => {
    veil.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    const entries = [...event.dataTransfer.items].map((each) => each.webkitGetAsEntry?.()).filter(Boolean);
    const plain = [...event.dataTransfer.files].map((each) => [each, ""]);
    keepFiles(entries.length ? (await Promise.all(entries.map((each) => walk(each)))).flat() : plain);
  });
  addEventListener("change", ({ target }) => target.matches("[data-do=add]") && keepFiles([...target.files].map((each) => [each, each.webkitRelativePath])));
  const prepareAdding = () => {
    const adding = find(".adding");
    if (!adding) return;
    adding.addEventListener("submit", (event) => event.preventDefault());
    all("input[type=file]", adding).forEach((input) =>
      input.addEventListener("change", () => {
        take([...input.files].map((each) => [each, each.webkitRelativePath]));
        input.value = "";
      })
    );
    const top = new URL(`${root}new`, location.href).href;
    const mark = find(".bookmarklet");
    find("a", mark).href = `javascript:void open(${JSON.stringify(top)}+"%23"+encodeURIComponent(JSON.stringify({title:document.title,text:location.href+"\\n\\n"+(String(getSelection())||document.body.innerText)})))`;
    find("a", mark).addEventListener("click", (event) => event.preventDefault());
  };
  prepareAdding();
  addEventListener("paste", (event) => {
    if (!find("#sent") || isWriting(event.target)) return;
    const files = [...event.clipboardData.files].map((each) => [each, ""]);
    if (files.length) return take(files);
    const text = event.clipboardData.getData("text/plain");
    if (text.trim()) location.href = `${root}new#${encodeURIComponent(JSON.stringify({ title: "", text }))}`;
  });

  // Live updates: redraw the state of the engine on this page when it changes.
  const live = all("[data-live=state]")[0] || (find("#results") && !field.value && find("#results"));
  if (live && window.EventSource) {
    let source;
    const show = async () => {
      if (field?.value || live.contains(document.activeElement) || find(".pick:checked", live)) return;
      const answer = await ask(location.href).catch(() => null);
      if (answer?.ok) swap(`#${live.id}`, parsed(await answer.text()));
    };
    // Only in a visible tab: a browser opens at most six connections to a server for all tabs together.
    const listen = (isFirst) => {
      source?.close();
      if (document.hidden) return;
      let hasState = isFirst;
      source = new EventSource(`${root}events`);
      source.onmessage = () => (hasState ? (hasState = false) : show());
    };
    listen(true);
    addEventListener("visibilitychange", () => listen(false));
    addEventListener("pagehide", () => source?.close());
  }

  // While a task runs, refresh its page every second.
  const watch = () => {
    if (!find("[data-busy]")) return;
    setTimeout(async () => {
      const answer = document.hidden ? null : await ask(location.href).catch(() => null);
      if (answer?.status === 401) return location.reload();
      const [here, there] = [find("[data-busy]"), answer?.ok && find("#care", new DOMParser().parseFromString(await answer.text(), "text/html"))];
      if (here && there) here.replaceWith(there);
      watch();
    }, 1000);
  };
  watch();

  find(".tree input[autofocus]")?.select(); // the name of a tag, to type another

  // Scroll to the passage that the address names, or to its mark in the picture of a page.
  const [RED, GREEN, BLUE, NEAR] = [255, 214, 90, 8]; // the colour in pdf_picture.py
  const markOn = (image) => {
    const canvas = document.createElement("canvas");
    const { naturalWidth: width, naturalHeight: height } = image;
    Object.assign(canvas, { width, height });
    const drawing = canvas.getContext("2d", { willReadFrequently: true });
    drawing.drawImage(image, 0, 0);
    const { data } = drawing.getImageData(0, 0, width, height);
    const isNear = (at, value) => Math.abs(data[at] - value) < NEAR;
    for (let at = 0; at < data.length; at += 4) if (isNear(at + 2, BLUE) && isNear(at + 1, GREEN) && isNear(at, RED)) return Math.floor(at / 4 / width) / height;
    return null;
  };
  const showHit = async () => {
    const image = find('.looks img[src*="chunk="]');
    const [hit, text, from] = [find(".hit"), find(".page-text"), scrollY];
    if (image) {
      image.loading = "eager";
      const mark = await image.decode().then(() => markOn(image), () => null);
      if (scrollY !== from) return; // the reader was faster
      const { top, height } = image.getBoundingClientRect();
      if (mark !== null) return scrollBy(0, top + mark * height - innerHeight / 3);
      if (text) text.open = true;
    }
    hit?.scrollIntoView({ block: "center" });
  };
  showHit();
})();
