// The leaderboard of all runs, or of the instances of some; what was chosen is in the address.
function leaderboardPage(head, main) {
  const query = new URLSearchParams(location.search), runs = query.getAll("run");
  head.append(el("h1", {}, "Leaderboard"), el("p", { class: "dim" }, ...(runs.length ? ["The instances of ", ...runs.flatMap((run, i) => [i ? ", " : "", link("/run/" + run, run)]), ". ", link("/leaderboard", "All runs")] : ["Each row is a run, with the last value of each metric. To see instances, open a run's leaderboard, or compare runs."])));
  const where = el("input", { type: "search", id: "where", size: 42, spellcheck: "false", autocapitalize: "none", placeholder: "params.lr > 0.01 and metrics.accuracy > 0.9", value: query.get("where") || "" });
  const pipeline = el("input", { type: "search", id: "pipeline", size: 12, spellcheck: "false", value: query.get("pipeline") || "" });
  const form = el("form", { class: "controls", role: "search" }, el("label", {}, "Where", where), runs.length ? "" : el("label", {}, "Pipeline", pipeline), el("button", { class: "plain", type: "submit" }, "Show"));
  const said = el("p", { role: "status" }), into = el("div", {});
  main.append(form, said, into);
  let leaderboard = null, isLoading = false, again = false;
  const load = async () => {
    if (isLoading) { again = true; return; }
    isLoading = true;
    const words = new URLSearchParams(runs.map((run) => ["run", run]));
    words.set("where", where.value);
    words.set("pipeline", pipeline.value);
    const found = await api("/api/leaderboard", words);
    if (found) {
      said.textContent = found.rows.length ? "" : where.value || pipeline.value ? "No row matches." : "No run has been made yet.";
      into.hidden = !found.rows.length;
      if (found.rows.length) {
        leaderboard = leaderboard || leaderboardView(into, { query, open: go, linkTo: link, href: (row) => "/run/" + row.run + (row.step ? "?step=" + encodeURIComponent(row.step) : "") });
        leaderboard.show(found.rows.map((row) => ({ ...row, p: { ...(found.parameters || {})[row.run], ...row.p } })), found.low);
      }
    }
    isLoading = false;
    if (again) { again = false; load(); }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    remembered("where", where.value);
    remembered("pipeline", pipeline.value);
    load();
  });
  load();
  return listen({}, { runs: load });
}
