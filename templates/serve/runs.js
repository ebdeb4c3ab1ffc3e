// All runs, a page of them at a time.
function runsView(head, main) {
  const page = 100, query = new URLSearchParams(location.search);
  let offset = Number(query.get("offset")) || 0, total = 0;
  head.append(el("h1", {}, "Runs"));
  const said = el("span", { role: "status" }), body = el("tbody", {});
  const heads = [["Run"], ["Pipeline"], ["Status"], ["Started", "wide"], ["Time", "number"], ["Steps", "number"], ["Reused", "number wide"], ["Failed", "number"], ["Tags and note", "wide"]];
  const newer = el("button", { class: "plain", type: "button" }, "Newer"), older = el("button", { class: "plain", type: "button" }, "Older");
  const table = scroller("Table of runs", el("table", { class: "runs" }, el("thead", {}, el("tr", {}, ...heads.map(([text, kind]) => el("th", { scope: "col", class: kind }, text)))), body));
  table.classList.add("tall");
  main.append(table, el("div", { class: "pager" }, newer, older, said));
  const row = (run) => el("tr", {}, el("td", {}, link("/run/" + run.id, run.id)), el("td", { class: "text" }, name(run.pipeline)), el("td", {}, badge(run.status)),
    el("td", { class: "wide" }, date(run.started)), el("td", { class: "number" }, run.took || !isRunning(run.status) ? time(run.took) : ""), el("td", { class: "number" }, run.steps.toLocaleString("en")),
    el("td", { class: "number wide" }, run.reused || ""), el("td", { class: "number" }, run.failed || ""), el("td", { class: "text wide" }, name([run.tags.join(", "), run.note].filter(Boolean).join(" \u00b7 "))));
  const load = async () => {
    const found = await api("/api/runs", { offset, limit: page });
    if (!found) return;
    total = found.total;
    const focused = body.contains(document.activeElement) && document.activeElement.getAttribute("href");
    body.replaceChildren(...found.runs.map(row));
    if (focused) { const again = [...body.querySelectorAll("a")].find((one) => one.getAttribute("href") === focused); if (again) again.focus(); }
    said.textContent = total === 0 ? "No run has been made yet." : (offset + 1).toLocaleString("en") + " to " + (offset + found.runs.length).toLocaleString("en") + " of " + count(total, "run");
    newer.disabled = offset === 0;
    older.disabled = offset + page >= total;
  };
  const move = (by) => { offset = Math.max(0, offset + by); history.replaceState(null, "", offset ? "/?offset=" + offset : "/"); load(); };
  newer.addEventListener("click", () => move(-page));
  older.addEventListener("click", () => move(page));
  load();
  return listen({}, { runs: load });
}
