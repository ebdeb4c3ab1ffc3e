// Runs beside each other: what differs first, then what is equal in all.
function comparePage(head, main) {
  const names = new URLSearchParams(location.search).getAll("run");
  let follow = () => {};
  head.append(el("h1", {}, "Comparison"), el("p", {}, link("/leaderboard?" + new URLSearchParams(names.map((run) => ["run", run])), "Their instances as a leaderboard")));
  api("/api/compare", new URLSearchParams(names.map((run) => ["run", run]))).then((found) => {
    if (!found) return;
    document.title = "Comparison of " + count(found.runs.length, "run");
    const tableOf = (label, rows) => {
      const body = el("tbody", {});
      let group = "";
      for (const row of rows) {
        body.append(el("tr", {}, el("td", { class: "dim" }, row.group === group ? "" : row.group), el("th", { scope: "row", class: "name" }, name(row.name)),
          ...row.values.map((value) => el("td", { class: typeof value === "number" ? "number" : "text" }, name(shownValue(row.group + "." + row.name, value))))));
        group = row.group;
      }
      const node = scroller(label, el("table", { class: "compared" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Kind"), el("th", { scope: "col" }, "Value"),
        ...found.runs.map((run) => el("th", { scope: "col" }, link("/run/" + run.id, run.id), el("br", {}), badge(run.status))))), body));
      node.classList.add("tall");
      return node;
    };
    const metrics = [...new Set(found.curves)];
    if (metrics.length) {
      const section = el("section", { id: "curves", "aria-labelledby": "curves-title" }, el("h2", { id: "curves-title" }, "Curves"));
      main.append(section);
      const view = curvesView(section, (metric, range) => askedCurves(names, metric, range), { finer: true, query: new URLSearchParams(location.search) });
      view.show(metrics);
      follow = () => view.show(metrics);
    }
    // Values of a matrix's instances are many, and stand in the leaderboard: they are folded.
    const isInstance = (row) => row.group === "metric" ? row.name.split(".").length > 2 : /^[^:]*\.[^:]*: /.test(row.name);
    const differs = found.rows.filter((row) => row.differs), equal = found.rows.filter((row) => !row.differs), instances = differs.filter(isInstance), differing = differs.length > 20 ? differs.filter((row) => !instances.includes(row)) : differs;
    main.append(el("h2", {}, "What differs"), differing.length ? tableOf("What differs", differing) : el("p", {}, "Nothing: all values are equal."));
    if (differing.length < differs.length) main.append(el("details", { class: "fold" }, el("summary", {}, count(instances.length, "value") + " of instances"), tableOf("What differs in instances", instances)));
    if (equal.length) main.append(el("details", { class: "fold" }, el("summary", {}, count(equal.length, "value") + " equal in all"), tableOf("What is equal", equal)));
  });
  return listen({}, { runs: () => follow() });
}
