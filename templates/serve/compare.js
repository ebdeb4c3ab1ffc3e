// Runs beside each other: what differs first, then what is equal in all.
function comparePage(head, main) {
  const names = new URLSearchParams(location.search).getAll("run");
  const isShown = shownView();
  let follow = () => {};
  head.append(el("h1", {}, "Comparison"), el("p", {}, link("/leaderboard?" + new URLSearchParams(names.map((run) => ["run", run])), "Their instances as a leaderboard")));
  api("/api/compare", new URLSearchParams(names.map((run) => ["run", run]))).then((found) => {
    if (!found || !isShown()) return;
    document.title = "Comparison of " + count(found.runs.length, "run");
    // The best of a metric's values, if it is not that of all runs.
    const bestOf = (row) => {
      const numbers = row.group === "metric" ? row.values.filter(isNumber) : [];
      return numbers.length > 1 && row.differs ? (row.low ? Math.min : Math.max)(...numbers) : null;
    };
    const shorter = (text) => shortened(text.replace(/\b([0-9a-f]{12})[0-9a-f]{20,}\b/g, "$1"), 300);
    const cellOf = (row, value, best) => {
      const isBest = best !== null && value === best;
      return el("td", { class: (typeof value === "number" ? "number" : "text") + (isBest ? " best" : "") }, isBest ? el("span", { "aria-label": "best", role: "img" }, "\u2605") : "", isBest ? " " : "", name(shorter(shownValue(row.group + "." + row.name, value))));
    };
    const tableOf = (label, rows) => {
      const body = el("tbody", {});
      let group = "";
      for (const row of rows) {
        const best = bestOf(row);
        body.append(el("tr", {}, el("td", { class: "dim wide" }, row.group === group ? "" : row.group), el("th", { scope: "row", class: "name" }, breakingName(row.name)), ...row.values.map((value) => cellOf(row, value, best))));
        group = row.group;
      }
      const node = scroller(label, el("table", { class: "compared" }, el("thead", {}, el("tr", {}, el("th", { scope: "col", class: "wide" }, "Kind"), el("th", { scope: "col" }, "Value"),
        ...found.runs.map((run) => el("th", { scope: "col" }, link("/run/" + run.id, run.id), el("br", {}), badge(run.status))))), body));
      node.classList.add("tall");
      return node;
    };
    // A part that is drawn when it is opened: runs of thousands of steps have thousands of equal values.
    const folded = (text, label, rows) => {
      const node = el("details", { class: "fold" }, el("summary", {}, text));
      node.addEventListener("toggle", () => { if (node.open && node.children.length === 1) node.append(tableOf(label, rows)); });
      if (rows.length) main.append(node);
    };
    // Results, parameters and changes by hand come first; inputs, which differ because another step made them otherwise, and the use of resources follow.
    const isUsed = (row) => row.group === "usage", isInput = (row) => row.group === "key" && /: input /.test(row.name);
    const differs = found.rows.filter((row) => row.differs), first = differs.filter((row) => !isUsed(row) && !isInput(row));
    main.append(el("h2", {}, "What differs"), first.length ? tableOf("What differs", first) : el("p", {}, "Nothing but time: results, parameters, code and environments are equal."));
    const metrics = [...new Set(found.curves)];
    if (metrics.length) {
      const section = el("section", { id: "curves", "aria-labelledby": "curves-title" }, el("h2", { id: "curves-title" }, "Curves"));
      main.append(section);
      const view = curvesView(section, (metric, range) => askedCurves(names, metric, range), { finer: true, query: new URLSearchParams(location.search) });
      view.show(metrics);
      follow = () => view.show(metrics);
    }
    const inputs = differs.filter(isInput), used = differs.filter(isUsed), equal = found.rows.filter((row) => !row.differs);
    folded(count(inputs.length, "input") + " that differ" + (inputs.length === 1 ? "s" : ""), "Inputs that differ", inputs);
    folded("What the runs used", "What the runs used", used);
    folded(count(equal.length, "value") + " equal in all", "What is equal", equal);
  });
  return listen({}, { runs: () => follow() });
}
