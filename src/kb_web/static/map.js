// The map shows documents as points, to drag, zoom and open. A list below it shows the documents in view.
"use strict";
(() => {
  const find = (selector) => document.querySelector(selector);
  const [canvas, tip, list, legend, tally] = ["#map", "#tip", "#in-view", "#legend", "#tally"].map(find);
  const { root } = document.body.dataset;
  const names = JSON.parse(canvas.dataset.types);
  const paint = canvas.getContext("2d");
  const COLOURS = 8;
  const LISTED = 12;
  const LABELS = 24;
  const MOST_ZOOM = 60;
  const FONT = "12px system-ui, sans-serif";
  let points = [];
  let tags = [];
  let groups = [];
  let labels = [];
  let sprites = [];
  let ink = {};
  const size = { width: 0, height: 0 };

  // The state, which the address contains.
  const asked = new URLSearchParams(location.search);
  const number = (name, otherwise) => (Number.isFinite(parseFloat(asked.get(name))) ? parseFloat(asked.get(name)) : otherwise);
  const view = { x: number("x", 0), y: number("y", 0), zoom: Math.min(MOST_ZOOM, Math.max(1, number("z", 1))) };
  let by = asked.get("by") === "tag" ? "tag" : "type";
  let only = asked.get("only");
  const remember = () => {
    const moved = view.zoom > 1 || view.x || view.y ? { x: view.x.toFixed(3), y: view.y.toFixed(3), z: view.zoom.toFixed(2) } : {};
    const said = new URLSearchParams({ ...(by === "tag" ? { by } : {}), ...(only ? { only } : {}), ...moved }).toString();
    history.replaceState(null, "", said ? `?${said}` : location.pathname);
  };

  // The position of a point on the canvas, and the point at a position.
  const margin = 28;
  const scale = () => ({ x: ((size.width - 2 * margin) / 2) * view.zoom, y: ((size.height - 2 * margin) / 2) * view.zoom });
  const place = (point, s) => [size.width / 2 + (point.x - view.x) * s.x, size.height / 2 - (point.y - view.y) * s.y];
  const isChosen = (point) => !only || point.group.name === only;
  const radius = () => Math.min(7, 2.6 * Math.sqrt(Math.sqrt(view.zoom)) + (points.length < 200 ? 3 : points.length < 1500 ? 1.6 : 0));
  const isIn = ([x, y]) => x > 0 && y > 0 && x < size.width && y < size.height;
  const nearest = (x, y, most = 14) => {
    const s = scale();
    let best = null;
    let distance = most * most;
    for (const point of points) {
      if (!isChosen(point)) continue;
      const [px, py] = place(point, s);
      const d = (px - x) ** 2 + (py - y) ** 2;
      if (d < distance) [best, distance] = [point, d];
    }
    return best;
  };

  // Colours: one for each of the most frequent groups; all other documents share the last one.
  const group = () => {
    const key = by === "tag" ? (point) => point.tags[0] ?? -1 : (point) => point.doc_type;
    const counts = new Map();
    for (const point of points) counts.set(key(point), (counts.get(key(point)) || 0) + 1);
    const most = [...counts].filter(([name]) => name !== -1).sort((one, other) => other[1] - one[1]).slice(0, COLOURS - 1);
    const named = new Map(most.map(([name, count], colour) => [name, { name: by === "tag" ? tags[name].tag : name, count, colour }]));
    const left = points.length - most.reduce((sum, [, count]) => sum + count, 0);
    const rest = { name: by === "tag" ? "other or no tag" : "other", count: left, colour: COLOURS - 1 };
    for (const point of points) point.group = named.get(key(point)) || rest;
    groups = [...named.values(), ...(left ? [rest] : [])];
    if (only && !groups.some((each) => each.name === only)) only = null;
    showLegend();
  };
  const showLegend = () => {
    legend.replaceChildren(
      ...groups.map((each) => {
        const [item, button, dot, count] = ["li", "button", "i", "b"].map((name) => document.createElement(name));
        button.type = "button";
        button.className = "chip";
        button.setAttribute("aria-pressed", String(only === each.name));
        dot.className = `dot c${each.colour}`;
        count.textContent = each.count.toLocaleString("en");
        const name = by === "type" ? names[each.name] || (each.name === "other" ? "Other" : each.name) : each.name;
        button.append(dot, name, " ", count);
        button.addEventListener("click", () => {
          only = only === each.name ? null : each.name;
          for (const other of legend.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button && only !== null));
          settle();
        });
        item.append(button);
        return item;
      })
    );
  };
  const mix = () => {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(name).trim();
    ink = { text: named("--ink"), paper: named("--sheet"), ring: named("--accent") };
    const r = radius() * devicePixelRatio;
    sprites = Array.from({ length: COLOURS }, (_, colour) => {
      const sprite = document.createElement("canvas");
      sprite.width = sprite.height = Math.ceil(2 * r + 2);
      const disc = sprite.getContext("2d");
      disc.fillStyle = named(`--c${colour}`);
      disc.arc(sprite.width / 2, sprite.width / 2, r, 0, 7);
      disc.fill();
      return sprite;
    });
  };

  // Draw the points into a layer that is larger than the canvas. Each frame only moves and stretches this layer, so that
  // its cost does not depend on the number of points. Redraw it when the map rests or its edge becomes visible.
  const MARGIN = 0.3;
  const layer = document.createElement("canvas");
  const brush = layer.getContext("2d");
  let drawn = null;
  const drawLayer = () => {
    const [width, height] = [canvas.width, canvas.height].map((each) => Math.round(each * (1 + 2 * MARGIN)));
    if (layer.width !== width || layer.height !== height) [layer.width, layer.height] = [width, height];
    else brush.clearRect(0, 0, width, height);
    const s = scale();
    const half = sprites[0].width / 2;
    const [bx, by] = [s.x * devicePixelRatio, -s.y * devicePixelRatio];
    const [ax, ay] = [width / 2 - view.x * bx - half, height / 2 - view.y * by - half];
    const put = (isWanted) => {
      for (let index = points.length - 1; index >= 0; index--) {
        const point = points[index];
        const x = ax + point.x * bx;
        const y = ay + point.y * by;
        if (x > -20 && y > -20 && x < width && y < height && isWanted(point)) brush.drawImage(sprites[point.group.colour], x | 0, y | 0);
      }
    };
    brush.globalAlpha = 0.1;
    if (only) put((point) => !isChosen(point));
    brush.globalAlpha = 0.8;
    put(isChosen);
    brush.globalAlpha = 1;
    brush.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, canvas.width * MARGIN, canvas.height * MARGIN);
    Object.assign(brush, { font: FONT, textBaseline: "middle", lineJoin: "round", lineWidth: 3.5, strokeStyle: ink.paper, fillStyle: ink.text });
    for (const point of labels) {
      const [x, y] = place(point, s);
      brush.strokeText(point.label, x + radius() + 4, y);
      brush.fillText(point.label, x + radius() + 4, y);
    }
    brush.setTransform(1, 0, 0, 1, 0, 0);
    drawn = { ...view };
  };
  const isCovered = () => {
    if (!drawn || view.zoom > 2.5 * drawn.zoom) return false;
    const [s, stretch] = [scale(), view.zoom / drawn.zoom];
    const room = (1 + 2 * MARGIN) * stretch - 1;
    return 2 * Math.abs(view.x - drawn.x) * s.x <= room * size.width && 2 * Math.abs(view.y - drawn.y) * s.y <= room * size.height;
  };
  let waiting = false;
  let pointed = null;
  const draw = () => {
    waiting = false;
    if (!isCovered()) drawLayer();
    const [s, ratio, stretch] = [scale(), devicePixelRatio, view.zoom / drawn.zoom];
    const [width, height] = [layer.width * stretch, layer.height * stretch];
    const [x0, y0] = [canvas.width / 2 + (drawn.x - view.x) * s.x * ratio, canvas.height / 2 - (drawn.y - view.y) * s.y * ratio];
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.clearRect(0, 0, canvas.width, canvas.height);
    paint.drawImage(layer, Math.round(x0 - width / 2), Math.round(y0 - height / 2), width, height);
    if (!pointed) return;
    const [x, y] = place(pointed, s);
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.beginPath();
    paint.arc(x, y, radius() + 3, 0, 7);
    paint.lineWidth = 2;
    paint.strokeStyle = ink.ring;
    paint.stroke();
  };
  const later = () => {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  };

  // When the map rests: label some points with their titles, and list the points nearest to the centre.
  const label = (shown) => {
    labels = [];
    const taken = [];
    paint.font = FONT;
    for (const { point, x, y } of shown) {
      if (labels.length >= (size.width < 500 ? LABELS / 3 : LABELS)) return;
      point.label ??= point.title.length > 30 ? `${point.title.slice(0, 29).replace(/[\s.,:;–-]+$/, "")}…` : point.title;
      const box = [x, y - 9, x + radius() + 8 + paint.measureText(point.label).width, y + 9];
      if (box[2] > size.width || box[1] < 0 || box[3] > size.height) continue;
      if (taken.some((other) => box[0] < other[2] + 24 && other[0] < box[2] + 24 && box[1] < other[3] + 26 && other[1] < box[3] + 26)) continue;
      taken.push(box);
      labels.push(point);
    }
  };
  const settle = () => {
    const s = scale();
    const shown = [];
    for (const point of points) {
      const [x, y] = place(point, s);
      if (isIn([x, y]) && isChosen(point)) shown.push({ point, x, y });
    }
    label(shown);
    const distance = ({ x, y }) => Math.hypot(x - size.width / 2, y - size.height / 2);
    const near = shown.map((each) => [distance(each), each.point]).sort((one, other) => one[0] - other[0]).slice(0, LISTED);
    list.replaceChildren(
      ...near.map(([, point]) => {
        const [item, link, kind] = ["li", "a", "span"].map((name) => document.createElement(name));
        link.href = `${root}d/${point.id}`;
        link.className = "title";
        link.textContent = point.title;
        kind.className = "meta";
        kind.append(Object.assign(document.createElement("span"), { textContent: names[point.doc_type] || point.doc_type }));
        item.append(link, kind);
        return item;
      })
    );
    tally.textContent = `${shown.length.toLocaleString("en")} in view${shown.length > LISTED ? `; the list shows the ${LISTED} nearest to the centre` : ""}`;
    mix();
    drawn = null;
    remember();
    later();
  };
  let resting;
  const rest = () => {
    clearTimeout(resting);
    resting = setTimeout(settle, 150);
  };

  // Moving.
  const move = (x, y) => {
    const s = scale();
    view.x = Math.max(-1.2, Math.min(1.2, view.x - x / s.x));
    view.y = Math.max(-1.2, Math.min(1.2, view.y + y / s.y));
    later();
    rest();
  };
  const zoom = (factor, x = size.width / 2, y = size.height / 2) => {
    const before = scale();
    const [left, up] = [view.x + (x - size.width / 2) / before.x, view.y - (y - size.height / 2) / before.y];
    view.zoom = Math.min(MOST_ZOOM, Math.max(1, view.zoom * factor));
    const after = scale();
    view.x = view.zoom === 1 ? 0 : left - (x - size.width / 2) / after.x;
    view.y = view.zoom === 1 ? 0 : up + (y - size.height / 2) / after.y;
    later();
    rest();
  };
  const point = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const hide = () => {
    tip.hidden = true;
    if (pointed) later();
    pointed = null;
    canvas.style.cursor = "";
  };
  const show = (event) => {
    const [x, y] = point(event);
    const found = nearest(x, y);
    if (!found) return hide();
    if (found !== pointed) later();
    pointed = found;
    canvas.style.cursor = "pointer";
    tip.hidden = false;
    tip.firstChild.textContent = found.title;
    const said = found.tags.map((each) => tags[each].tag).slice(0, 5);
    tip.lastChild.textContent = [names[found.doc_type] || found.doc_type, ...said].join(" · ");
    const [px, py] = place(found, scale());
    tip.style.left = `${Math.max(4, Math.min(px + 14, size.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${py + 18 + tip.offsetHeight > size.height ? py - tip.offsetHeight - 14 : py + 18}px`;
  };
  const held = new Map();
  let travelled = 0;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, point(event));
    travelled = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId);
    if (!before) return show(event);
    const [x, y] = point(event);
    const other = [...held].find(([id]) => id !== event.pointerId)?.[1];
    const apart = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]);
    if (other) zoom(apart([x, y]) / Math.max(1, apart(before)), (x + other[0]) / 2, (y + other[1]) / 2);
    else move(x - before[0], y - before[1]);
    travelled += Math.abs(x - before[0]) + Math.abs(y - before[1]);
    held.set(event.pointerId, [x, y]);
    if (travelled > 6) hide();
  });
  const release = (event) => held.delete(event.pointerId);
  canvas.addEventListener("pointerup", (event) => {
    const found = held.size === 1 && travelled <= 6 ? nearest(...point(event), event.pointerType === "touch" ? 24 : 14) : null;
    release(event);
    if (found) location.href = `${root}d/${found.id}`;
  });
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", hide);
  canvas.addEventListener("wheel", (event) => (event.preventDefault(), hide(), zoom(Math.exp(-event.deltaY / 300), ...point(event))), { passive: false });
  canvas.addEventListener("dblclick", (event) => event.preventDefault());
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    move(...step);
  });
  const reset = () => (Object.assign(view, { x: 0, y: 0, zoom: 1 }), settle());
  for (const [name, act] of Object.entries({ nearer: () => zoom(1.6), farther: () => zoom(1 / 1.6), whole: reset }))
    find(`[data-map=${name}]`).addEventListener("click", act);
  const choice = find("#by");
  choice.value = by;
  choice.addEventListener("change", () => {
    by = choice.value;
    only = null;
    group();
    settle();
  });

  // The size, the theme, and the points.
  new ResizeObserver(() => {
    const box = canvas.getBoundingClientRect();
    [size.width, size.height] = [box.width, box.height];
    [canvas.width, canvas.height] = [Math.round(box.width * devicePixelRatio), Math.round(box.height * devicePixelRatio)];
    if (points.length) settle(), draw();
  }).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => points.length && settle());
  const load = async () => {
    if (document.hidden) return document.addEventListener("visibilitychange", load, { once: true });
    const answer = await fetch(`${root}map.json`, { headers: { Accept: "application/json" } }).catch(() => null);
    if (answer?.status === 401) return location.reload();
    const found = answer?.ok ? await answer.json() : null;
    if (found?.documents.length) {
      ({ documents: points, tags } = found);
      find("#being-drawn").hidden = true;
      find(".map").classList.add("drawn");
      group();
      settle();
      requestAnimationFrame(() => window.dispatchEvent(new Event("kb:mapped")));
    } else if (found?.is_current) find("#being-drawn").textContent = "No documents to show yet.";
    if (!found?.is_current) setTimeout(load, points.length ? 5000 : 700);
  };
  load();
})();
