// Returns the place of a metric in an order by how much it says about a row's quality: first the run's headlines, then metrics that are good when they are high, then
// losses, and costs such as times and sizes last.
const goodNames = /acc|f1|auc|score|precision|recall|r2|bleu|rouge|map|iou|dice|reward/i, costNames = /(^|[_. /])(seconds|secs?|ms|time|duration|latency|epochs?|steps?|size|bytes|[kmg]i?b|memory|lr|rate|count|samples|tokens|speed|throughput|params)([_. /]|$)/i;
function rankOf(metric, low, headlines) {
  if (headlines.includes(metric) && !costNames.test(metric)) return headlines.indexOf(metric) / 10;
  const kind = costNames.test(metric) ? 4 : goodNames.test(metric) ? 1 : low.has(metric) ? 2 : 3;
  return kind + (/train/i.test(metric) ? 0.5 : 0);
}

const byRank = (metrics, low = new Set(), headlines = []) => [...metrics].sort((a, b) => rankOf(a, low, headlines) - rankOf(b, low, headlines));

// The leaderboard: runs or instances as rows, parameters before metrics; values that are equal in all rows stand above the table.
// `href(row)` returns the address that a row leads to, `open` follows it within the page; `query` has the choices that the page's address keeps.
function leaderboardView(into, { query = null, href = null, open = null, linkTo = null } = {}) {
  const page = 25, state = { step: "", sort: "", order: "", mean: null, chart: "", axes: [] };
  if (query) Object.assign(state, { step: query.get("of") || "", sort: query.get("sort") || "", order: query.get("order") || "", mean: query.get("over") === "nothing" ? "" : query.get("over"), chart: query.get("draw") || "", axes: query.getAll("axis") });
  const select = (id) => el("select", { id }), step = select("leaderboard-step"), mean = select("leaderboard-mean"), drawing = select("leaderboard-chart"), axisX = select("leaderboard-x"), axisY = select("leaderboard-y");
  const stepWord = el("span", {}), stepLabel = el("label", {}, stepWord, step), meanLabel = el("label", {}, "Averaged over", mean), drawingLabel = el("label", {}, "Drawing", drawing), axisLabels = [el("label", {}, "Across", axisX), el("label", {}, "Up", axisY)];
  const equal = el("p", { class: "dim" }), chart = el("div", {}), head = el("thead", {}), body = el("tbody", {}), said = el("p", { class: "dim", role: "status" }), more = el("button", { class: "more", type: "button" }, "Show more rows");
  const table = scroller("Table of the leaderboard", el("table", { class: "leaderboard" }, head, body));
  table.classList.add("tall");
  into.append(el("div", { class: "controls" }, stepLabel, meanLabel, drawingLabel, ...axisLabels), equal, chart, table, said, more);
  let rows = [], low = new Set(), headlines = [], shown = page, list = [], columns = [], best = new Map();

  const fillSelect = (node, options, value) => { node.replaceChildren(...options.map(([one, text]) => el("option", { value: one }, text))); node.value = options.some(([one]) => one === value) ? value : options[0][0]; return node.value; };
  const numbersOf = (column) => list.map((row) => row.values.get(column)).filter(isNumber);
  const isLow = (column) => low.has(column.slice(2));
  /// The best of a column, of the rows that have not failed if there are any.
  const bestOf = (column) => {
    const numbers = list.filter((row) => !hasFailed(row)).map((row) => row.values.get(column)).filter(isNumber);
    return (isLow(column) ? Math.min : Math.max)(...(numbers.length ? numbers : numbersOf(column)));
  };

  const isFailed = (row) => row.s === "failed" && !!row.step, hasFailed = (row) => row.all.every(isFailed);
  /// Rows of one step, or runs of one pipeline; those that differ only in the parameter to average over are one.
  const chosenRows = () => {
    const bases = [...new Set(rows.map((row) => row.b || ""))], sizes = new Map(bases.map((one) => [one, rows.filter((row) => (row.b || "") === one).length]));
    const largest = [...bases].sort((a, b) => sizes.get(b) - sizes.get(a))[0];
    stepLabel.hidden = bases.length < 2;
    stepWord.textContent = rows.some((row) => row.step) ? "Step" : "Pipeline";
    state.step = fillSelect(step, bases.map((one) => [one, clean(one) + " (" + sizes.get(one) + ")"]), bases.includes(state.step) ? state.step : largest);
    const mine = rows.filter((row) => (row.b || "") === state.step), parameters = varying(mine);
    if (state.mean === null) state.mean = parameters.find((key) => foldNames.test(key)) || "";
    meanLabel.hidden = !parameters.length;
    const chosen = fillSelect(mean, [["", "nothing"], ...parameters.map((key) => [key, clean(key)])], state.mean);
    const groups = new Map();
    for (const row of mine) {
      const p = { ...row.p };
      if (chosen) delete p[chosen];
      const key = chosen ? row.run + "\n" + JSON.stringify(Object.entries(p).sort()) : row.run + "\n" + row.step;
      if (!groups.has(key)) groups.set(key, { ...row, p, all: [] });
      groups.get(key).all.push(row);
    }
    return [...groups.values()].map((group) => {
      const ended = group.all.filter((row) => !isFailed(row)), averaged = ended.length ? ended : group.all; // the last values of failed instances are not results
      if (group.all.length < 2) return { ...group, averaged, spread: {} };
      const m = {}, spread = {};
      for (const metric of new Set(averaged.flatMap((row) => Object.keys(row.m)))) {
        const numbers = averaged.map((row) => row.m[metric]).filter(isNumber);
        if (!numbers.length) continue;
        m[metric] = numbers.reduce((sum, value) => sum + value, 0) / numbers.length;
        spread[metric] = Math.sqrt(numbers.reduce((sum, value) => sum + (value - m[metric]) ** 2, 0) / numbers.length);
      }
      return { ...group, averaged, m, spread };
    });
  };
  /// Sets and sorts the rows, and the columns that differ; shows equal columns above the table.
  const arrange = () => {
    list = chosenRows();
    const runs = new Set(list.map((row) => row.run)), keys = (of) => [...new Set(list.flatMap((row) => Object.keys(row[of])))], told = [];
    const metricNames = byRank(keys("m"), low, headlines), all = [...keys("p").map((key) => ["p", key]), ...metricNames.map((key) => ["m", key])];
    for (const row of list) row.values = new Map(all.map(([of, key]) => [of + " " + key, row[of][key]]));
    columns = all.filter(([of, key]) => {
      const values = new Set(list.map((row) => textOf(row[of][key])));
      if (values.size === 1 && list.length > 1) told.push(key + " = " + shortened([...values][0]));
      return values.size > 1 || list.length === 1;
    }).map(([of, key]) => of + " " + key);
    equal.replaceChildren(told.length ? el("span", {}, "Equal in all " + grouped(list.length) + " rows: ", name(told.join(", "))) : "");
    equal.hidden = !told.length;
    const metrics = columns.filter((column) => column.startsWith("m ") && numbersOf(column).length);
    best = new Map(metrics.map((column) => [column, bestOf(column)]));
    const has = (column) => columns.includes(column) || column === "run";
    const sort = has(state.sort) ? state.sort : metrics[0] || "", order = has(state.sort) && state.order ? state.order : isLow(sort) ? "ascending" : "descending";
    const value = (row) => sort === "run" ? row.run : row.values.get(sort), rank = (one) => isNumber(one) ? 0 : one === undefined || one === null || one === "nan" ? 2 : 1;
    if (sort) list.sort((a, b) => hasFailed(a) - hasFailed(b) || rank(value(a)) - rank(value(b)) || (order === "ascending" ? 1 : -1) * (isNumber(value(a)) && isNumber(value(b)) ? value(a) - value(b) : textOf(value(a)) < textOf(value(b)) ? -1 : textOf(value(a)) > textOf(value(b)) ? 1 : 0));
    return { sort, order, runs };
  };
  const drawChart = (sort) => {
    const metrics = columns.filter((column) => column.startsWith("m ")), short = (column) => column.slice(2), options = columns.map((column) => [column, clean(short(column))]);
    fillSelect(drawing, [["", "none"], ["scatter", "scatter"], ["parallel", "parallel axes"]], state.chart);
    drawingLabel.hidden = list.length < 2 || !metrics.length;
    for (const label of axisLabels) label.hidden = drawing.value !== "scatter" || !options.length;
    if (options.length) { fillSelect(axisX, options, state.axes[0] || columns[0]); fillSelect(axisY, options, state.axes[1] || metrics[0] || columns[0]); }
    if (!drawing.value || !columns.length) { chart.replaceChildren(); return; }
    const chosen = drawing.value === "scatter" ? [axisX.value, axisY.value] : columns.slice(0, 12), numbers = numbersOf(sort), from = Math.min(...numbers), to = Math.max(...numbers);
    const items = list.map((row) => ({ label: row.label, href: href && href(row), values: chosen.map((column) => row.values.get(column)), colour: isNumber(row.values.get(sort)) && to > from ? shade((row.values.get(sort) - from) / (to - from)) : palette[0] }));
    chart.replaceChildren(chartOf(chosen.map(short), items, drawingWidth(into), { open }), el("p", { class: "dim" }, numbers.length ? "Coloured by " : "", numbers.length ? name(short(sort)) : "", numbers.length ? ", from blue (" + figure(from) + ") to yellow (" + figure(to) + ")." : ""));
  };
  const remember = () => {
    if (!query) return;
    for (const [key, value] of [["of", stepLabel.hidden ? "" : state.step], ["sort", state.sort], ["order", state.order], ["draw", state.chart]]) remembered(key, value);
    remembered("over", state.mean === null ? "" : state.mean || "nothing");
    const words = new URLSearchParams(location.search);
    words.delete("axis");
    for (const axis of state.axes) words.append("axis", axis);
    history.replaceState(null, "", location.pathname + (words.size ? "?" + words : "") + location.hash);
  };
  /// A mean with as many digits as its spread leaves; other values as they are.
  const valueText = (value, spread) => spread ? String(+value.toFixed(Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(spread)))))) : textOf(value);
  const cellOf = (row, column, sort) => {
    const value = row.values.get(column), isBest = best.get(column) === value && list.length > 1 && value !== undefined && (!hasFailed(row) || list.every(hasFailed)), spread = column.startsWith("m ") ? row.spread[column.slice(2)] : undefined;
    return el("td", { class: (typeof value === "number" ? "number" : "text") + (isBest ? " best" : "") + (column === sort ? " sorted" : "") }, isBest ? el("span", { "aria-label": "best", role: "img" }, "\u2605") : "", isBest ? " " : "", name(valueText(value, spread)), spread ? el("span", { class: "dim", title: "standard deviation" }, " \u00b1 " + figure(+spread.toPrecision(2))) : "");
  };
  // A row begins with its run, and its rank or its name, which lead to its page. The rank replaces a name that only repeats the parameters beside it.
  const failedOf = (row) => row.all.filter(isFailed).length;
  const rowOf = (row, i, { runs, sort, kind, hasCounts, failures }) => {
    const to = (text) => { const node = linkTo && href ? linkTo(href(row), text) : name(text); if (kind === "rank" && linkTo && href) node.setAttribute("aria-label", clean(row.step)); return node; };
    return el("tr", {}, ...(runs.size > 1 ? [el("td", {}, linkTo ? linkTo("/run/" + row.run, row.run) : name(row.run))] : []),
      ...(kind === "rank" ? [el("td", { class: "rank", title: clean(row.step) }, to(String(i + 1)))] : kind === "name" ? [el("td", { class: "name" }, to(row.step || row.run))] : []),
      ...columns.map((column) => cellOf(row, column, sort)), ...(failures ? [el("td", {}, ...(failedOf(row) ? [el("span", { class: "s-failed" }, (row.all.length > 1 ? failedOf(row) + " of " + row.all.length : "failed"))] : []))] : []), ...(hasCounts ? [el("td", { class: "number" }, String(row.averaged.length))] : []));
  };
  const draw = () => {
    const { sort, order, runs } = arrange(), differs = columns.some((column) => column.startsWith("p ")), isMean = list.some((row) => row.all.length > 1), sizes = new Set(list.map((row) => row.averaged.length));
    const kind = list.length === 1 ? "" : !isMean && !differs ? "name" : !isMean && runs.size < 2 && list[0].step ? "rank" : "", hasCounts = isMean && sizes.size > 1, failures = list.some(failedOf);
    for (const row of list) row.label = [runs.size > 1 || !row.step ? row.run : "", ...columns.filter((column) => column.startsWith("p ")).map((column) => column.slice(2) + "=" + textOf(row.values.get(column)))].filter(Boolean).join(", ") || row.step || row.run;
    const focused = head.contains(document.activeElement) && document.activeElement.dataset.sort;
    const heading = (column, text, kind) => {
      const node = el("button", { class: "sort", type: "button" }, name(text), el("span", { "aria-hidden": "true" }, sort === column ? order === "ascending" ? " \u25B4" : " \u25BE" : "")), cell = el("th", { scope: "col", class: kind + (sort === column ? " sorted" : "") }, node);
      node.dataset.sort = column;
      if (sort === column) cell.setAttribute("aria-sort", order);
      node.addEventListener("click", () => { state.order = sort === column ? order === "ascending" ? "descending" : "ascending" : ""; state.sort = column; remember(); draw(); });
      return cell;
    };
    if (list.length === 1) { // one row is read downwards
      head.replaceChildren(el("tr", {}, el("th", { scope: "col" }, name(list[0].step || list[0].run)), el("th", { scope: "col", class: "number" }, "Value")));
      body.replaceChildren(...columns.map((column) => el("tr", {}, el("th", { scope: "row" }, name(column.slice(2))), cellOf(list[0], column, ""))));
    } else {
      head.replaceChildren(el("tr", {}, ...(runs.size > 1 ? [heading("run", "Run", "")] : []), ...(kind ? [el("th", { scope: "col" }, kind === "rank" ? "#" : list.some((row) => row.step) ? "Instance" : "Run")] : []), ...columns.map((column) => heading(column, column.slice(2), numbersOf(column).length ? "number" : "")), ...(failures ? [el("th", { scope: "col" }, "Failed")] : []), ...(hasCounts ? [el("th", { scope: "col", class: "number" }, "Averaged")] : [])));
      if (focused) { const node = [...head.querySelectorAll("button")].find((one) => one.dataset.sort === focused); if (node) node.focus(); }
      body.replaceChildren(...list.slice(0, shown).map((row, i) => rowOf(row, i, { runs, sort, kind, hasCounts, failures })));
    }
    // Rows whose metrics are all equal are told in the sentence above.
    const hasMetrics = list.length === 1 || best.size > 0 || columns.some((column) => column.startsWith("m "));
    said.textContent = !hasMetrics || list.length === 1 ? "" : (list.length > shown ? shown + " of " : "") + count(list.length, "row") + (isMean && !hasCounts ? ", each the mean of " + [...sizes][0] : "") + (best.size ? "; \u2605 marks the best of a column, of a loss or an error the lowest" : "") + (list.some((row) => Object.values(row.spread).some(Boolean)) ? "; \u00b1 is the standard deviation" : "");
    more.hidden = !hasMetrics || list.length <= shown;
    table.hidden = !list.length || !hasMetrics;
    drawChart(sort);
  };
  const change = () => { Object.assign(state, { step: step.value, mean: mean.value, chart: drawing.value, axes: drawing.value === "scatter" ? [axisX.value, axisY.value] : [] }); remember(); draw(); };
  for (const node of [mean, drawing, axisX, axisY]) node.addEventListener("change", change);
  step.addEventListener("change", () => { state.mean = null; Object.assign(state, { step: step.value, sort: "", order: "" }); draw(); state.mean = mean.value; remember(); });
  more.addEventListener("click", () => { shown += 4 * page; draw(); });
  let width = 0;
  new ResizeObserver(() => { if (into.isConnected && list.length && drawing.value && Math.abs(drawingWidth(into) - width) > 1) { width = drawingWidth(into); draw(); } }).observe(into);
  let known = "";
  return {
    /// @param first names of metrics that say how good a row is
    show(now, lower, first = []) { // equal rows are not drawn again, so that the focus stays
      const text = JSON.stringify(now);
      if (text === known) return;
      [known, rows, low, headlines] = [text, withNumericParameters(now), new Set(lower), first];
      draw();
    },
  };
}
