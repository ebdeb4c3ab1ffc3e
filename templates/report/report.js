"use strict";
// Draws the report from the JSON in this file. All texts become text nodes; nothing is parsed as HTML.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const run = data.run, steps = data.steps, main = document.getElementById("main");

  // --- texts
  const words = { cached: "reused" };
  const word = (status) => words[status] || status;
  // What would be invisible, or turn the order of letters around, is shown by its number.
  const clean = (text) => String(text)
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
      (c) => "\u27e8" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
  const time = (ms) => {
    if (ms < 1000) return Math.round(ms) + " ms";
    if (ms < 60000) return (ms / 1000).toFixed(1) + " s";
    const s = Math.round(ms / 1000), pad = (n) => String(n).padStart(2, "0");
    return s < 3600 ? Math.floor(s / 60) + " m " + pad(s % 60) + " s" : Math.floor(s / 3600) + " h " + pad(Math.floor(s % 3600 / 60)) + " m";
  };
  const bytes = (n) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit = 0;
    while (n >= 1024 && unit < units.length - 1) { n /= 1024; ++unit; }
    return (unit && n < 100 ? n.toFixed(1) : Math.round(n)) + " " + units[unit];
  };
  const figure = (value) => typeof value === "number" ? String(+value.toPrecision(6)) : clean(value);
  const date = (ms) => ms ? new Date(ms).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "";
  const count = (n, noun) => n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");

  // --- elements
  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) if (value !== undefined && value !== null) node.setAttribute(name, value);
    for (const child of children) if (child !== null && child !== undefined && child !== "")
      node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
    return node;
  };
  const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
  const svg = (name, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  const name = (text) => el("bdi", {}, text);
  const badge = (status) => el("span", { class: "badge s-" + status }, word(status));
  const section = (id, title) => {
    const node = el("section", { id, "aria-labelledby": id + "-title" }, el("h2", { id: id + "-title" }, title));
    main.append(node);
    nav.append(el("a", { href: "#" + id }, title));
    return node;
  };
  const nav = el("nav", { "aria-label": "Sections" });

  // --- a log with its colours
  function log(text, leftOut) {
    const box = el("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Log" });
    if (leftOut) box.append(el("span", { class: "dim" }, "\u2026 " + bytes(leftOut) + " before this\n"));
    let style = [];
    const put = (part) => {
      if (!part) return;
      const lines = part.split("\n").map((line) => { // what a carriage return has overwritten is gone
        const kept = line.replace(/\r+$/, "");
        return clean(kept.slice(kept.lastIndexOf("\r") + 1));
      }).join("\n");
      box.append(style.length ? el("span", { class: style.join(" ") }, "") : "");
      if (style.length) box.lastChild.textContent = lines; else box.append(document.createTextNode(lines));
    };
    // Sequences of a terminal: colours count, all others are left out.
    const sequence = /\u001b(?:\[([0-9;]*)([ -/]*[@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g;
    let at = 0;
    for (const match of text.matchAll(sequence)) {
      put(text.slice(at, match.index));
      at = match.index + match[0].length;
      if (match[2] !== "m") continue;
      const codes = (match[1] || "0").split(";").map(Number);
      for (let i = 0; i < codes.length; ++i) {
        const code = codes[i];
        const drop = (test) => { style = style.filter((one) => !test(one)); };
        if (code === 0) style = [];
        else if (code === 1) style.push("bold");
        else if (code === 3) style.push("italic");
        else if (code === 4) style.push("under");
        else if (code === 22) drop((one) => one === "bold");
        else if (code === 39) drop((one) => /^c\d$/.test(one));
        else if (code === 38 || code === 48) i += codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0;
        else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) { drop((one) => /^c\d$/.test(one)); style.push("c" + code % 10); }
      }
    }
    put(text.slice(at));
    requestAnimationFrame(() => { box.scrollTop = box.scrollHeight; }); // its end says what happened
    return box;
  }

  const last = (step) => step.a && step.a[step.a.length - 1];
  const base = (step) => step.b || step.n;
  const asked = (step) => data.declared[base(step)] || {};
  const took = (step) => (step.a || []).reduce((sum, attempt) => sum + attempt.d, 0);

  // --- heading
  const counts = {};
  for (const step of steps) counts[step.s] = (counts[step.s] || 0) + 1;
  document.getElementById("head").append(
    el("h1", {}, name(run.pipeline), " ", badge(run.status)),
    el("div", { class: "dim mono" }, run.id));
  const facts = el("dl", { class: "facts" });
  const fact = (title, value) => { if (value) facts.append(el("dt", {}, title), el("dd", {}, value instanceof Node ? value : name(value))); };
  fact("Steps", Object.entries(counts).map(([status, n]) => n.toLocaleString("en") + " " + word(status)).join(", "));
  fact("Time", run.took ? time(run.took) : "");
  fact("Started", date(run.started));
  fact("Orchestrator", run.orchestrator);
  fact("Commit", run.commit && run.commit + (run.dirty ? ", with changes that are not committed" : ""));
  fact("Reused from", run.same_as);
  fact("Tags", (run.tags || []).join(", "));
  fact("Note", run.note);
  fact("Parameters", Object.entries(run.parameters || {}).map(([key, value]) => key + " = " + JSON.stringify(value)).join(", "));
  document.getElementById("head").append(facts, nav);

  // --- what failed first
  const failed = steps.filter((step) => step.s === "failed")
    .sort((a, b) => ((last(a) || { t: 1e15, d: 0 }).t + (last(a) || { d: 0 }).d) - ((last(b) || { t: 1e15, d: 0 }).t + (last(b) || { d: 0 }).d));
  if (failed.length) {
    const box = section("failed", failed.length === 1 ? "What failed" : "What failed first");
    const show = (step) => {
      const attempt = last(step);
      const card = el("div", { class: "card" }, el("h3", {}, name(step.n)), el("div", {}, name((attempt && attempt.m) || step.m || "failed")));
      if (attempt && attempt.l) card.append(log(attempt.l, attempt.lo));
      return card;
    };
    box.append(show(failed[0]));
    if (failed.length > 1) {
      const list = el("ul", {});
      for (const step of failed.slice(1, 21)) list.append(el("li", {}, name(step.n), " \u2013 ", name(step.m || "")));
      box.append(el("p", {}, "Then failed " + count(failed.length - 1, "more step") + (failed.length > 21 ? ", of which the first 20:" : ":")), list);
    }
  }

  // --- the graph: a node for each step, or for all instances of one
  const worst = ["failed", "cancelled", "skipped", "running", "pending", "succeeded", "cached"];
  const groups = new Map();
  for (const step of steps) {
    const group = groups.get(base(step)) || { name: base(step), n: 0, status: "cached", needs: [] };
    ++group.n;
    if (worst.indexOf(step.s) < worst.indexOf(group.status)) group.status = step.s;
    groups.set(group.name, group);
  }
  for (const group of groups.values()) group.needs = ((data.declared[group.name] || {}).needs || []).filter((one) => groups.has(one) && one !== group.name);
  function shownGroups(most) {
    if (groups.size <= most) return [...groups.values()];
    const chosen = new Set(), waiting = [...groups.values()].filter((group) => group.status === "failed");
    if (!waiting.length) waiting.push(...[...groups.values()].slice(0, most));
    while (waiting.length && chosen.size < most) {
      const group = waiting.shift();
      if (chosen.has(group)) continue;
      chosen.add(group);
      waiting.push(...group.needs.map((one) => groups.get(one)));
    }
    return [...groups.values()].filter((group) => chosen.has(group));
  }
  function layers(list) {
    const inside = new Set(list), depth = new Map();
    const order = [];
    // Iterative, because a chain may have thousands of steps.
    for (const start of list) {
      const stack = [[start, 0]];
      while (stack.length) {
        const top = stack[stack.length - 1];
        if (depth.has(top[0])) { stack.pop(); continue; }
        const next = top[0].needs[top[1]++];
        if (next !== undefined) {
          const group = groups.get(next);
          if (inside.has(group) && !depth.has(group) && !stack.some((entry) => entry[0] === group)) stack.push([group, 0]);
          continue;
        }
        depth.set(top[0], 1 + Math.max(-1, ...top[0].needs.map((one) => depth.has(groups.get(one)) ? depth.get(groups.get(one)) : -1)));
        order.push(top[0]);
        stack.pop();
      }
    }
    const result = [];
    for (const group of order) (result[depth.get(group)] = result[depth.get(group)] || []).push(group);
    const place = new Map();
    result.forEach((layer) => layer.forEach((group, i) => place.set(group, i)));
    const mean = (group, neighbours) => {
      const places = neighbours.filter((one) => place.has(one)).map((one) => place.get(one));
      return places.length ? places.reduce((a, b) => a + b, 0) / places.length : place.get(group);
    };
    const users = new Map(list.map((group) => [group, []]));
    for (const group of list) for (const one of group.needs) if (users.has(groups.get(one))) users.get(groups.get(one)).push(group);
    for (let pass = 0; pass < 4; ++pass) { // fewer crossings: each beside the mean of its neighbours
      const sweep = pass % 2 ? [...result].reverse() : result;
      for (const layer of sweep) {
        const at = new Map(layer.map((group) => [group, mean(group, pass % 2 ? users.get(group) : group.needs.map((one) => groups.get(one)))]));
        layer.sort((a, b) => at.get(a) - at.get(b)).forEach((group, i) => place.set(group, i));
      }
    }
    return result;
  }
  {
    const most = 150, list = shownGroups(most), box = section("graph", "Graph"), columns = layers(list);
    if (list.length < groups.size) box.append(el("p", { class: "dim" }, "The pipeline has " + count(groups.size, "step") + "; the graph shows " + list.length + (failed.length ? ": those that failed, and what they need." : " of them.")));
    const nodeWidth = 168, nodeHeight = 40, gapX = 56, gapY = 14, pad = 12;
    const tallest = Math.max(...columns.map((column) => column.length));
    const height = pad * 2 + tallest * (nodeHeight + gapY) - gapY, width = pad * 2 + columns.length * (nodeWidth + gapX) - gapX;
    const spot = new Map();
    columns.forEach((column, x) => column.forEach((group, y) => spot.set(group, {
      x: pad + x * (nodeWidth + gapX), y: pad + (y + (tallest - column.length) / 2) * (nodeHeight + gapY) })));
    const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Graph of " + count(list.length, "step") + "; the table of steps lists the same" });
    for (const group of list) for (const one of group.needs) {
      const from = spot.get(groups.get(one)), to = spot.get(group);
      if (!from || !to) continue;
      const x1 = from.x + nodeWidth, y1 = from.y + nodeHeight / 2, x2 = to.x, y2 = to.y + nodeHeight / 2, bend = Math.max(24, (x2 - x1) / 2);
      drawing.append(svg("path", { class: "edge", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }));
    }
    for (const group of list) {
      const { x, y } = spot.get(group), shown = clean(group.name);
      drawing.append(svg("g", { class: "node" },
        svg("title", {}, group.name + ": " + word(group.status) + (group.n > 1 ? ", " + group.n + " instances" : "")),
        svg("rect", { class: "box", x, y, width: nodeWidth, height: nodeHeight, rx: 4 }),
        svg("rect", { class: "f-" + group.status, x, y, width: 5, height: nodeHeight, rx: 2 }),
        svg("text", { x: x + 14, y: y + 17 }, shown.length > 22 ? shown.slice(0, 21) + "\u2026" : shown),
        svg("text", { class: "small", x: x + 14, y: y + 32 }, word(group.status) + (group.n > 1 ? " \u00d7 " + group.n : ""))));
    }
    box.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Graph" }, drawing));
  }

  // --- timeline: attempts in as few rows as they need
  {
    const all = [];
    for (const step of steps) for (const attempt of step.a || []) {
      const [waiting, preparing, running, storing] = attempt.h || [0, 0, attempt.d, 0];
      all.push({ step, attempt, from: Math.max(0, attempt.t - waiting), to: attempt.t + Math.max(attempt.d, 1), parts: [["waiting", waiting], ["preparing", preparing], ["running", running], ["storing", storing]] });
    }
    if (all.length) {
      const box = section("timeline", "Timeline"), most = 2000;
      box.append(el("div", { class: "legend" }, ...["waiting", "preparing", "running", "storing", "failed"].map((one) => el("span", {}, el("span", { class: "key k-" + one }), one))));
      if (all.length > most) {
        all.sort((a, b) => (b.to - b.from) - (a.to - a.from));
        box.append(el("p", { class: "dim" }, "The longest " + count(most, "attempt") + " of " + all.length.toLocaleString("en") + "."));
        all.length = most;
      }
      all.sort((a, b) => a.from - b.from);
      const end = Math.max(...all.map((one) => one.to), 1), width = 1100, rowHeight = all.length > 200 ? 6 : 20, ends = [];
      for (const one of all) {
        let row = ends.findIndex((free) => free <= one.from);
        if (row < 0) row = ends.length;
        ends[row] = one.to;
        one.row = row;
      }
      const top = 22, height = top + ends.length * (rowHeight + 2) + 6, x = (ms) => ms / end * (width - 20) + 10;
      const drawing = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Timeline of " + count(all.length, "attempt") + " in " + time(end) });
      for (let i = 0; i <= 5; ++i) {
        const ms = end * i / 5;
        drawing.append(svg("line", { class: "grid", x1: x(ms), x2: x(ms), y1: top - 4, y2: height }),
          svg("text", { class: "small", x: x(ms), y: 13, "text-anchor": i === 0 ? "start" : i === 5 ? "end" : "middle" }, time(ms)));
      }
      for (const one of all) {
        const y = top + one.row * (rowHeight + 2), bar = svg("g", {}, svg("title", {}, one.step.n + ": " + one.parts.filter((part) => part[1]).map((part) => part[0] + " " + time(part[1])).join(", ")));
        let at = one.from;
        for (const [part, ms] of one.parts) {
          if (!ms && part !== "running") continue;
          const kind = part === "running" ? (one.attempt.m || one.attempt.x ? "failed" : "succeeded") : part;
          bar.append(svg("rect", { class: "f-" + kind, x: x(at), y, width: Math.max(1, x(at + ms) - x(at)), height: rowHeight }));
          at += ms;
        }
        const label = clean(one.step.n);
        if (rowHeight > 12 && x(one.to) - x(one.from) > label.length * 7 + 8) bar.append(svg("text", { x: x(one.from) + 4, y: y + 14, class: "on" }, label));
        drawing.append(bar);
      }
      box.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Timeline" }, drawing));
    }
  }

  // --- metrics
  if (data.metrics.length) {
    const box = section("metrics", "Metrics"), curves = data.metrics.filter((metric) => (metric.curve || []).filter((point) => typeof point[1] === "number").length > 1);
    if (curves.length) {
      const grid = el("div", { class: "curves" });
      for (const metric of curves) {
        const points = metric.curve.filter((point) => typeof point[1] === "number"), xs = points.map((point) => point[0]), ys = points.map((point) => point[1]);
        const left = Math.min(...xs), right = Math.max(...xs), low = Math.min(...ys), high = Math.max(...ys), width = 300, height = 110;
        const x = (v) => 4 + (v - left) / (right - left || 1) * (width - 8), y = (v) => height - 6 - (v - low) / (high - low || 1) * (height - 12);
        grid.append(el("figure", {}, el("figcaption", {}, name(metric.step), " \u00b7 ", name(metric.name), " ", el("strong", {}, figure(metric.last))),
          svg("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": metric.name + ": " + count(metric.points, "value") + " from " + figure(low) + " to " + figure(high) + ", last " + figure(metric.last) },
            svg("polyline", { class: "curve", points: points.map((point) => x(point[0]).toFixed(1) + "," + y(point[1]).toFixed(1)).join(" ") })),
          el("div", { class: "dim" }, figure(low) + " \u2013 " + figure(high) + " \u00b7 " + count(metric.points, "value"))));
      }
      box.append(grid);
    }
    // A row for each step, a column for each metric.
    const names = [...new Set(data.metrics.map((metric) => metric.name))].slice(0, 12), rows = new Map();
    for (const metric of data.metrics) { if (!rows.has(metric.step)) rows.set(metric.step, new Map()); rows.get(metric.step).set(metric.name, metric.last); }
    const body = el("tbody", {});
    for (const [step, values] of [...rows].slice(0, 500)) body.append(el("tr", {}, el("td", { class: "name" }, name(step)), ...names.map((one) => el("td", { class: "number" }, values.has(one) ? figure(values.get(one)) : ""))));
    box.append(el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of metrics" }, el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Step"), ...names.map((one) => el("th", { scope: "col", class: "number" }, name(one))))), body)));
  }

  // --- pictures
  if (data.pictures.length) {
    const grid = el("div", { class: "curves" });
    for (const picture of data.pictures) grid.append(el("figure", {}, el("figcaption", {}, name(picture.name)), el("img", { src: picture.url, alt: "Output " + clean(picture.name) })));
    section("pictures", "Pictures").append(grid);
  }

  // --- steps
  {
    const box = section("steps", "Steps"), page = 200;
    const filter = el("input", { type: "search", id: "filter" }), order = el("select", { id: "order" });
    const orders = { "In order": null, "Longest first": took, "Most CPU first": (step) => (last(step) || {}).c || 0, "Most memory first": (step) => (last(step) || {}).y || 0 };
    for (const one of Object.keys(orders)) order.append(el("option", {}, one));
    const status = el("select", { id: "status" }, el("option", {}, "all"), ...Object.keys(counts).map((one) => el("option", { value: one }, word(one))));
    box.append(el("div", { class: "controls" }, el("label", {}, "Name contains", filter), el("label", {}, "Status", status), el("label", {}, "Order", order)));
    const said = el("p", { class: "dim", role: "status" }), body = el("tbody", {}), more = el("button", { class: "more", type: "button" }, "Show more");
    const heads = [["Step"], ["Status"], ["Time", "number"], ["CPU", "number wide"], ["Memory", "number"], ["Asked", "number wide"]];
    box.append(said, el("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": "Table of steps" }, el("table", {}, el("thead", {}, el("tr", {}, ...heads.map(([text, kind]) => el("th", { scope: "col", class: kind }, text)))), body)), more);
    let list = [], shown = 0;
    const detail = (step) => {
      const cell = el("td", { colspan: heads.length }), list = el("dl", { class: "facts" });
      const fact = (title, value) => { if (value) list.append(el("dt", {}, title), el("dd", {}, name(value))); };
      fact("Message", step.m);
      fact("Reused from", step.r);
      fact("Image", step.i === undefined ? "" : data.images[step.i]);
      fact("Key", step.k);
      fact("Parameters", step.p && Object.entries(step.p).map(([key, value]) => key + " = " + JSON.stringify(value)).join(", "));
      fact("Inputs", (step.f || []).map(([input, maker]) => input + " \u2190 " + maker).join(", "));
      fact("Outputs", (step.o || []).map(([output, file, size, digest]) => output + " (" + file + ", " + bytes(size) + ", " + digest + ")").join(", "));
      cell.append(list);
      (step.a || []).forEach((attempt, i) => {
        const facts = [time(attempt.d)];
        if (attempt.x !== undefined) facts.push("exit code " + attempt.x);
        if (attempt.h) facts.push(["waiting", "preparing", "running", "storing"].map((one, at) => one + " " + time(attempt.h[at])).join(", "));
        if (attempt.rd) facts.push("read " + bytes(attempt.rd));
        if (attempt.wr) facts.push("written " + bytes(attempt.wr));
        for (const gpu of attempt.g || []) facts.push(gpu);
        cell.append(el("h3", {}, "Attempt " + (i + 1)), el("div", {}, name(facts.join(" \u00b7 "))));
        if (attempt.m) cell.append(el("div", {}, name(attempt.m)));
        if (attempt.l) cell.append(log(attempt.l, attempt.lo));
        else cell.append(el("div", { class: "dim" }, attempt.lo ? "The log (" + bytes(attempt.lo) + ") is left out: pipe logs has it." : "No output."));
      });
      return el("tr", { class: "details" }, cell);
    };
    const row = (step) => {
      const open = el("button", { class: "open", type: "button", "aria-expanded": "false" }, name(step.n)), attempt = last(step) || {}, want = asked(step);
      const line = el("tr", {}, el("td", { class: "name" }, open), el("td", {}, badge(step.s)), el("td", { class: "number" }, step.a ? time(took(step)) : ""),
        el("td", { class: "number wide" }, attempt.c === undefined ? "" : time(attempt.c)), el("td", { class: "number" }, attempt.y === undefined ? "" : bytes(attempt.y) + (attempt.yl === undefined ? "" : " of " + bytes(attempt.yl))),
        el("td", { class: "number wide" }, [want.memory && bytes(want.memory), want.cpu_count && want.cpu_count + " CPU"].filter(Boolean).join(", ")));
      open.addEventListener("click", () => {
        const isOpen = open.getAttribute("aria-expanded") === "true";
        if (isOpen) line.nextSibling.remove(); else line.after(detail(step));
        open.setAttribute("aria-expanded", String(!isOpen));
      });
      return line;
    };
    const extend = () => {
      const part = document.createDocumentFragment();
      for (const step of list.slice(shown, shown + page)) part.append(row(step));
      body.append(part);
      shown = Math.min(list.length, shown + page);
      more.hidden = shown === list.length;
      said.textContent = list.length > shown ? shown + " of " + count(list.length, "step") : count(list.length, "step");
    };
    const select = () => {
      const text = filter.value.toLowerCase(), by = orders[order.value];
      list = steps.filter((step) => (status.value === "all" || step.s === status.value) && step.n.toLowerCase().includes(text));
      if (by) list = [...list].sort((a, b) => by(b) - by(a));
      body.replaceChildren();
      shown = 0;
      extend();
    };
    filter.addEventListener("input", select);
    order.addEventListener("change", select);
    status.addEventListener("change", select);
    more.addEventListener("click", extend);
    select();
  }

  // --- environments
  if (data.images.length) {
    const box = section("environments", "Environments"), list = el("ul", {});
    data.images.forEach((image, i) => list.append(el("li", { class: "mono" }, name(image), " ", el("span", { class: "dim" }, count(steps.filter((step) => step.i === i).length, "step")))));
    box.append(list);
  }
})();
