// All runs: chosen by an expression, sorted by a value, with columns of values and a chart of them; a page of them at a time.
function runsView(head, main) {
  const page = 100, most = 2000, query = new URLSearchParams(location.search), chosen = new Set();
  const state = {
    offset: Number(query.get("offset")) || 0, where: query.get("where") || "", pipeline: query.get("pipeline") || "", tag: query.get("tag") || "",
    sort: query.get("sort") || "", order: query.get("order") || "", columns: query.getAll("column"), chart: query.get("chart") === "1",
  };
  let found = null, known = null, isLoading = false, again = false;

  head.append(el("h1", {}, "Runs"));
  const button = (text, act, kind) => { const node = el("button", { class: kind || "plain", type: "button" }, text); node.addEventListener("click", act); return node; };
  const where = el("input", { type: "search", id: "where", size: 34, spellcheck: "false", autocapitalize: "none", placeholder: "metrics.accuracy > 0.9", value: state.where });
  const pipeline = el("input", { type: "search", id: "pipeline", size: 12, spellcheck: "false", value: state.pipeline });
  const tag = el("input", { type: "search", id: "tag", size: 8, spellcheck: "false", value: state.tag });
  const form = el("form", { class: "controls", role: "search" }, el("label", {}, "Where", where), el("label", {}, "Pipeline", pipeline), el("label", {}, "Tag", tag), el("button", { class: "plain", type: "submit" }, "Show"));
  const columnList = el("div", { class: "choices" }), columns = el("details", { class: "fold" }, el("summary", {}, "Columns"), columnList);
  const chart = el("div", {}), chartFold = el("details", { class: "fold" }, el("summary", {}, "Chart"), chart);
  chartFold.open = state.chart;
  const said = el("span", { role: "status" }), headings = el("tr", {}), body = el("tbody", {});
  const newer = button("Newer", () => move(-page)), older = button("Older", () => move(page));
  const compare = button("Compare", () => go("/compare?" + new URLSearchParams([...chosen].map((run) => ["run", run]))));
  const table = scroller("Table of runs", el("table", { class: "runs" }, el("thead", {}, headings), body));
  table.classList.add("tall");
  main.append(form, columns, chartFold, table, el("div", { class: "pager" }, newer, older, compare, said));

  const remember = () => {
    const words = new URLSearchParams();
    for (const key of ["where", "pipeline", "tag", "sort", "order"]) if (state[key]) words.set(key, state[key]);
    if (state.offset) words.set("offset", state.offset);
    for (const column of state.columns) words.append("column", column);
    if (state.chart) words.set("chart", "1");
    history.replaceState(null, "", "/" + (words.size ? "?" + words : ""));
  };
  const asked = () => {
    const words = new URLSearchParams({ where: state.where, pipeline: state.pipeline, tag: state.tag, sort: state.sort, order: state.order });
    for (const column of state.columns) words.append("column", column);
    return words;
  };
  const change = () => { remember(); load(); };
  const move = (by) => { state.offset = Math.max(0, state.offset + by); change(); };

  const columnsOf = () => [["Run"], ["Status"], ...state.columns.map((column) => [column.slice(column.indexOf(".") + 1), "number", column]), ["Pipeline"], ["Started", "wide"],
    ["Time", "number", "run.seconds"], ["Steps", "number", "run.steps"], ["Reused", "number wide", "run.reused"], ["Failed", "number", "run.failed"], ["Tags and note", "wide"]];
  const drawHeadings = () => {
    const focused = headings.contains(document.activeElement) && document.activeElement.dataset.sort;
    headings.replaceChildren(el("th", {}, el("span", { class: "unseen" }, "Choose")), ...columnsOf().map(([text, kind, sort]) => {
      const cell = el("th", { scope: "col", class: kind });
      if (!sort) { cell.append(text); return cell; }
      if (state.sort === sort) cell.setAttribute("aria-sort", state.order || "descending");
      const node = button("", () => {
        if (state.sort !== sort) { state.sort = sort; state.order = ""; } else if (!state.order) state.order = "ascending"; else { state.sort = ""; state.order = ""; }
        state.offset = 0;
        change();
      }, "sort");
      node.dataset.sort = sort;
      node.append(name(text), el("span", { "aria-hidden": "true" }, state.sort === sort ? state.order ? " \u25B4" : " \u25BE" : ""));
      cell.append(node);
      return cell;
    }));
    if (focused) { const node = [...headings.querySelectorAll("button")].find((one) => one.dataset.sort === focused); if (node) node.focus(); }
  };
  newer.hidden = older.hidden = compare.hidden = true; // until there is something to show
  const sayChosen = () => { compare.hidden = chosen.size < 2; compare.textContent = "Compare " + chosen.size + " runs"; };
  const row = (run) => {
    const box = el("input", { type: "checkbox", "aria-label": "Choose " + run.id });
    box.checked = chosen.has(run.id);
    box.addEventListener("change", () => { if (box.checked) chosen.add(run.id); else chosen.delete(run.id); sayChosen(); });
    return el("tr", {}, el("td", {}, box), el("td", {}, link("/run/" + run.id, run.id)), el("td", {}, badge(run.status)), ...(run.values || []).map((value, i) => el("td", { class: "number" }, shownValue(state.columns[i], value))), el("td", { class: "text" }, name(run.pipeline)),
      el("td", { class: "wide" }, date(run.started)), el("td", { class: "number" }, run.took ? time(run.took) : ""), el("td", { class: "number" }, grouped(run.steps)),
      el("td", { class: "number wide" }, run.reused || ""), el("td", { class: "number" }, run.failed || ""),
      el("td", { class: "text wide" }, name([run.tags.join(", "), run.note].filter(Boolean).join(" \u00b7 "))));
  };
  const drawColumns = () => {
    const names = [...new Set([...known, ...state.columns])];
    columnList.replaceChildren(...names.map((column) => {
      const box = el("input", { type: "checkbox" });
      box.checked = state.columns.includes(column);
      box.addEventListener("change", () => { state.columns = box.checked ? [...state.columns, column] : state.columns.filter((one) => one !== column); change(); });
      return el("label", {}, box, " ", name(column));
    }));
  };
  const drawChart = async () => {
    if (!state.chart) { charted = null; chart.replaceChildren(); return; }
    const words = asked();
    words.set("limit", most);
    const all = state.columns.length < 2 ? { runs: [] } : found.offset === 0 && found.total <= page ? found : await api("/api/runs", words);
    charted = all && all.runs;
    if (charted) chart.replaceChildren(drawnRuns());
  };
  let charted = null, width = 0;
  const drawnRuns = () => chartOf(state.columns, charted.map((run) => ({ label: run.id, values: run.values, status: run.status, href: "/run/" + run.id })), chartWidth(), { noun: "run", open: go });
  const chartWidth = () => width = drawingWidth(main) - 28; // within the fold
  new ResizeObserver(() => { if (charted && main.contains(chart) && width !== drawingWidth(main) - 28) chart.replaceChildren(drawnRuns()); }).observe(chartFold);
  const load = async () => {
    if (isLoading) { again = true; return; } // at most one more, however often the store changes
    isLoading = true;
    const words = asked();
    words.set("offset", state.offset);
    words.set("limit", page);
    if (!known) words.set("names", "1");
    found = await api("/api/runs", words) || found;
    table.hidden = !found;
    if (found) {
      if (found.columns) known = found.columns;
      if (known) fillColumns();
      drawHeadings();
      const focused = body.contains(document.activeElement) && document.activeElement.closest("tr").querySelector("a").textContent, kind = focused && document.activeElement.tagName;
      body.replaceChildren(...found.runs.map(row));
      if (focused) { const line = [...body.children].find((one) => one.querySelector("a").textContent === focused); if (line) line.querySelector(kind).focus(); }
      said.textContent = found.total === 0 ? (state.where || state.pipeline || state.tag ? "No run matches." : "No run has been made yet.")
        : grouped(found.offset + 1) + " to " + grouped(found.offset + found.runs.length) + " of " + count(found.total, "run");
      newer.disabled = state.offset === 0;
      older.disabled = state.offset + page >= found.total;
      newer.hidden = older.hidden = found.total <= page;
      sayChosen();
      await drawChart();
    }
    isLoading = false;
    if (again) { again = false; load(); }
  };
  let drawnColumns = "";
  const fillColumns = () => { // a box that has the focus keeps it
    const now = JSON.stringify([known, state.columns.filter((one) => !known.includes(one))]);
    if (now !== drawnColumns) { drawnColumns = now; drawColumns(); }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    Object.assign(state, { where: where.value, pipeline: pipeline.value, tag: tag.value, offset: 0 });
    change();
  });
  chartFold.addEventListener("toggle", () => { if (state.chart === chartFold.open) return; state.chart = chartFold.open; remember(); if (found) drawChart(); });
  load();
  return listen({}, { runs: load });
}
