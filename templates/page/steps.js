// The table of steps: filtered, sorted, a page at a time; each row opens to attempts, logs and outputs.
const lastAttempt = (step) => step.a && step.a[step.a.length - 1];
const percent = (share) => Math.round(share * 100) + " %";
// Describes the use of an attempt's GPU: its mean and highest load, and its memory.
const gpuUse = (use) => !use ? "" : ": " + (use[0] === null ? "" : percent(use[0]) + " busy, at most " + percent(use[1]) + ", ") + bytes(use[3]) + " of " + bytes(use[4]) + " memory";
// Returns the control that chooses the rank whose lines the log of an attempt with nodes shows.
function rankChoice(ranks, showLines) {
  const select = el("select", {}, el("option", { value: "" }, "all ranks"), ...ranks.map((rank) => el("option", { value: rank }, "rank " + rank)));
  select.addEventListener("change", () => showLines(select.value ? linesOfRank(select.value) : null));
  return el("label", {}, "Lines of", select);
}
// Returns the table of the ranks of an attempt with nodes that has ended.
function ranksOf(attempt, nodes) {
  const known = (value, shown = String) => value === null ? "" : shown(value);
  // A rank is called the slowest only after a success, and if it took a tenth longer than the fastest: after a failure, all ranks end together.
  const times = attempt.rf === undefined && attempt.ra.every((one) => one[4] !== null) ? attempt.ra.map((one) => one[4]) : [], most = Math.max(...times);
  const slowest = times.length > 1 && most > 1.1 * Math.min(...times) ? attempt.ra[times.indexOf(most)][0] : null;
  // The rank that failed first is the first row.
  const listed = [...attempt.ra].sort((one, other) => (other[0] === attempt.rf) - (one[0] === attempt.rf));
  const line = ([rank, node, machine, code, took, cpu, memory, gpus]) => [rank, node, known(machine, (at) => nodes[at]), known(took, time), known(code), known(cpu, time), known(memory, bytes), gpus.join(", "), rank === attempt.rf ? el("span", { class: "worse" }, "failed first") : rank === slowest ? "slowest" : ""];
  const heads = ["Rank", "Node", "Machine", "Time", "Exit code", "CPU", "Memory", "GPU", ""], row = (tag, cells) => el("tr", {}, ...cells.map((cell) => el(tag, tag === "th" ? { scope: "col" } : { class: "whole" }, cell)));
  const said = count(attempt.ra.length, "rank") + " on " + count(new Set(attempt.ra.map((one) => one[1])).size, "node") + (attempt.rf !== undefined ? "; rank " + attempt.rf + " failed first" : slowest !== null ? "; rank " + slowest + " was the slowest" : "");
  const table = scroller("Table of ranks", el("table", {}, el("thead", {}, row("th", heads)), el("tbody", {}, ...listed.map((one) => row("td", line(one))))));
  return el("details", { class: "gather" }, el("summary", {}, said), table);
}

function stepTable(into, options) {
  const page = 200, rows = new Map();
  let data = null, list = [], shown = 0;
  const total = (step) => (step.a || []).reduce((sum, attempt) => sum + duration(data, attempt), 0);
  const orders = { "In order": null, "Longest first": total, "Most CPU first": (step) => (lastAttempt(step) || {}).c || 0, "Most memory first": (step) => (lastAttempt(step) || {}).y || 0 };
  const filter = el("input", { type: "search", id: "filter" });
  const order = el("select", { id: "order" }, ...Object.keys(orders).map((one) => el("option", {}, one)));
  const status = el("select", { id: "status" });
  const said = el("p", { class: "dim", role: "status" }), body = el("tbody", {}), more = el("button", { class: "more", type: "button" }, "Show more");
  const heads = [["Step"], ["Status"], ["Time", "number"], ["CPU", "number wide"], ["Memory", "number wide"], ["Asked", "number wide asked"]];
  const table = scroller("Table of steps", el("table", {}, el("thead", {}, el("tr", {}, ...heads.map(([text, kind]) => el("th", { scope: "col", class: kind }, text)))), body));
  table.classList.add("tall");
  into.append(el("div", { class: "controls" }, el("label", {}, "Name contains", filter), el("label", {}, "Status", status), el("label", {}, "Order", order)), said, table, more);

  const attemptFacts = (attempt, { nodes, images }) => {
    const facts = [attempt.e ? "" : time(attempt.d)];
    if (attempt.x !== undefined) facts.push("exit code " + attempt.x);
    if (attempt.h) facts.push(["waiting", "preparing", "running", "storing", "transfers"].slice(0, attempt.h.length).map((one, at) => one + " " + time(attempt.h[at])).join(", "));
    if (attempt.w !== undefined) facts.push("on " + nodes[attempt.w]);
    if (attempt.i !== undefined) facts.push("in " + images[attempt.i]);
    if (attempt.rd) facts.push("read " + bytes(attempt.rd));
    if (attempt.wr) facts.push("written " + bytes(attempt.wr));
    (attempt.g || []).forEach((gpu, at) => facts.push(gpu + gpuUse((attempt.gu || [])[at])));
    return facts.filter(Boolean).join(" \u00b7 ");
  };
  // Shows an input with its source: data from outside, an output, or gathered outputs, of which many are folded.
  const inputOf = ([input, maker, digest], gathers) => {
    if (digest !== undefined) return name(input + " \u2190 " + maker + (digest && " (" + digest + ")")); // data from outside
    const made = typeof maker === "number" ? gathers[maker] || [] : [maker], few = 5;
    if (made.length <= few) return name(input + " \u2190 " + made.join(", "));
    return el("details", { class: "gather" }, el("summary", {}, name(input + " \u2190 " + count(made.length, "output"))), el("ul", {}, ...made.map((one) => el("li", {}, name(one)))));
  };
  // While a run goes on, an open row keeps its logs, and only its facts are replaced.
  const details = (step) => {
    const facts = el("div", {}), attempts = el("div", {}), known = [], choices = [], logs = [], ranks = [];
    let asked = 0;
    const offerRanks = (now, i, list) => {
      if (list.length < 2 || choices[i].firstChild) return;
      choices[i].append(rankChoice(list, (belongs) => {
        const log = options.log(now, now.a[i], i + 1, undefined, belongs);
        logs[i].replaceWith(log);
        logs[i] = log;
      }));
    };
    const update = (now) => {
      (now.a || []).forEach((attempt, i) => {
        if (known[i]) return;
        known[i] = el("div", {}, name(attemptFacts(attempt, data)));
        choices[i] = el("div", {});
        logs[i] = options.log(now, attempt, i + 1);
        attempts.append(el("h3", {}, "Attempt " + (i + 1)), known[i], choices[i], logs[i]);
        offerRanks(now, i, [...Array((data.declared[base(now)] || {}).ranks || 0).keys()]);
      });
      if (!options.details) { fillIn({ step: now, images: data.images, nodes: data.nodes, gathers: data.gathers }); return; }
      const question = ++asked; // only the answer to the last one counts
      options.details(now).then((all) => { if (all && question === asked) fillIn(all); });
    };
    const fillIn = ({ step: now, images, nodes, gathers }) => {
      const { list: shownFacts, add } = factList();
      add("Message", now.m);
      add("Reused from", now.r && (options.run ? options.run(now.r) : now.r));
      add("Image", now.i === undefined ? "" : images[now.i]);
      add("Key", now.k);
      add("Parameters", pairs(now.p));
      const inputs = (now.f || []).map((input) => inputOf(input, gathers));
      add("Inputs", inputs.length && el("span", {}, ...inputs.flatMap((one, i) => i ? [", ", one] : [one])));
      const outputs = (now.o || []).map((output) => options.output ? options.output(output) : name(output[0] + " (" + output[1] + ", " + bytes(output[2]) + ", " + output[3] + ")"));
      add("Outputs", outputs.length && el("span", {}, ...outputs.flatMap((one, i) => i ? [", ", one] : [one])));
      facts.replaceChildren(shownFacts);
      (now.a || []).forEach((attempt, i) => {
        if (!known[i]) return;
        if (attempt.ra && !ranks[i]) {
          ranks[i] = ranksOf(attempt, nodes);
          offerRanks(now, i, attempt.ra.map(([rank]) => rank));
        }
        known[i].replaceChildren(name(attemptFacts(attempt, { nodes, images })), ...(attempt.m ? [el("div", {}, name(attempt.m))] : []), ...(ranks[i] ? [ranks[i]] : []));
      });
    };
    update(step);
    return { line: el("tr", { class: "details" }, el("td", { colspan: heads.length }, facts, attempts)), update };
  };
  const fillCells = (row) => {
    const step = row.step, attempt = lastAttempt(step) || {}, want = data.declared[base(step)] || {};
    while (row.line.children.length > 1) row.line.lastChild.remove();
    row.line.append(el("td", {}, badge(step.s)), el("td", { class: "number" }, step.a ? time(total(step)) : ""),
      el("td", { class: "number wide" }, attempt.c === undefined ? "" : time(attempt.c)), el("td", { class: "number wide" }, attempt.y === undefined ? "" : bytes(attempt.y) + (attempt.yl === undefined ? "" : " of " + bytes(attempt.yl))),
      el("td", { class: "number wide asked" }, [want.memory && bytes(want.memory), want.cpu_count && want.cpu_count + " CPU"].filter(Boolean).join(", ")));
  };
  const rowOf = (step) => {
    if (rows.has(step.n)) return rows.get(step.n);
    const open = el("button", { class: "open", type: "button", "aria-expanded": "false" }, name(step.n));
    const row = { step, line: el("tr", {}, el("td", { class: "name" }, open)), details: null, open };
    fillCells(row);
    open.addEventListener("click", () => {
      if (row.details) { row.details.line.remove(); row.details = null; if (options.closed) options.closed(row.step); }
      else { row.details = details(row.step); row.line.after(row.details.line); }
      open.setAttribute("aria-expanded", String(!!row.details));
    });
    rows.set(step.n, row);
    return row;
  };
  const extend = () => {
    const part = document.createDocumentFragment();
    for (const step of list.slice(shown, shown + page)) {
      const row = rowOf(step);
      part.append(row.line, ...(row.details ? [row.details.line] : []));
    }
    body.append(part);
    shown = Math.min(list.length, shown + page);
    more.hidden = shown === list.length;
    said.textContent = list.length > shown ? shown + " of " + count(list.length, "step") : count(list.length, "step");
  };
  const select = () => {
    const text = filter.value.toLowerCase(), by = orders[order.value], focused = document.activeElement;
    const before = list;
    list = data.steps.filter((step) => (status.value === "all" || step.s === status.value) && step.n.toLowerCase().includes(text));
    if (by) list = [...list].sort((a, b) => by(b) - by(a));
    if (shown && before.length === list.length && before.every((step, i) => step.n === list[i].n)) return;
    const most = Math.max(shown, page);
    body.replaceChildren();
    for (shown = 0; shown < Math.min(list.length, most);) extend();
    if (!list.length) extend();
    if (focused !== document.activeElement && body.contains(focused)) focused.focus();
  };
  const fillStatuses = () => {
    const found = [...new Set(data.steps.map((step) => step.s))], old = status.value || "all";
    if (status.length === found.length + 1 && found.every((one) => [...status.options].some((option) => option.value === one))) return;
    status.replaceChildren(el("option", { value: "all" }, "all"), ...found.map((one) => el("option", { value: one }, word(one))));
    status.value = found.includes(old) ? old : "all";
  };
  filter.addEventListener("input", select);
  order.addEventListener("change", select);
  status.addEventListener("change", select);
  more.addEventListener("click", extend);
  return {
    /// @param changed names of steps; null: all
    show(now, changed) {
      data = now;
      fillStatuses();
      table.classList.toggle("unasked", !Object.values(data.declared).some((one) => one.memory || one.cpu_count));
      for (const step of data.steps) {
        const row = rows.get(step.n);
        if (!row || (changed && !changed.has(step.n))) continue;
        row.step = step;
        fillCells(row);
        if (row.details) row.details.update(step);
      }
      select();
    },
    /// Updates the times of running steps.
    tick() { for (const row of rows.values()) if (row.step.s === "running") fillCells(row); },
    /// Shows the steps whose name contains a text and that have a status, or `all`.
    list(text, state) {
      filter.value = text; status.value = state; select();
      into.parentElement.scrollIntoView();
      filter.focus({ preventScroll: true });
    },
    open(step) {
      filter.value = step; status.value = "all"; select();
      const row = rows.get(step);
      if (!row) return;
      if (!row.details) row.open.click();
      row.open.focus();
    },
  };
}
