// A run, from what failed to its environments; drawn once, or again as it goes on.
// `options.log(step, attempt, number)` makes the node of an attempt's log.
//
// The keys of the data are short, because a run may have many thousands of steps (src/report/run_data.cpp). Times are milliseconds, sizes bytes; `i` and `w` of a step or
// an attempt are positions in `data.images` and `data.nodes`.
// step: n name, b the step that it is an instance of, s status, a attempts, p parameters, i image, m message, r run that it is reused from, k key, f inputs, o outputs
// attempt: t begin in the run, d duration, e true while it runs, x exit code, m message, q number of GPUs, c CPU time, y memory, yl its limit, h time by phase, hw waits by
//   reason, w node, i image, g GPUs, gu their use, rd read, wr written, ra ranks, rf rank that failed first, l log, lo size of the log before `l`
// failure: n names of steps, c their number, m message, h hints, d last lines, rf rank that failed first
// headline: n name, v value, low true if low is good, i number of instances, w the best one, a their mean, l and b [run, value] of the run before and of the best run
function runView(head, main, options) {
  const nav = el("nav", { "aria-label": "Sections" }), heading = el("h1", {}), id = el("div", { class: "dim mono" }), facts = el("div", {});
  const result = el("section", { "aria-label": "Result", id: "result" }), questions = el("section", { "aria-label": "Questions", id: "questions", hidden: "" });
  head.append(heading, id, questions, result, facts, nav);
  let data = null, places = new Map();

  /// Returns a link to the skipped steps, with the needs that failed.
  const skippedSteps = (n) => {
    const node = el("a", { href: "#steps" }, grouped(n) + " skipped"), groups = groupsOf(data), most = 3;
    node.addEventListener("click", (event) => { event.preventDefault(); table.list("", "skipped"); });
    const why = [...groups.values()].filter((group) => group.count.get("skipped")).flatMap((group) => group.needs.map((one) => groups.get(one)).filter((need) => need.count.get("failed"))
      .map((need) => group.name + " needs " + need.name + ", " + (need.n > 1 ? "of which " + grouped(need.count.get("failed")) : "which") + " failed"));
    return el("span", {}, node, why.length ? name(" (" + why.slice(0, most).join("; ") + (why.length > most ? "; \u2026" : "") + ")") : "");
  };
  const drawHead = () => {
    const run = data.run, counts = {};
    for (const status of worst) { const n = data.steps.reduce((sum, step) => sum + (step.s === status ? 1 : 0), 0); if (n) counts[status] = n; }
    heading.replaceChildren(name(run.pipeline), " ", badge(run.status));
    id.replaceChildren(run.id);
    const { list, add } = factList();
    add("Steps", Object.keys(counts).length && el("span", {}, ...Object.entries(counts).flatMap(([status, n], i) => [i ? ", " : "", status === "skipped" ? skippedSteps(n) : grouped(n) + " " + word(status)])));
    add("Time", run.took ? time(run.took) : isRunning(run.status) ? time(Math.max(0, data.now() - run.started)) : "");
    add("Started", date(run.started));
    add("Orchestrator", run.orchestrator);
    add("Commit", run.commit && run.commit + (run.dirty ? ", with changes that are not committed" : ""));
    add("Reused from", run.same_as && (options.run ? options.run(run.same_as) : run.same_as));
    add("Tags", (run.tags || []).join(", "));
    add("Note", run.note);
    add("Parameters", pairs(run.parameters));
    const focused = facts.contains(document.activeElement) && document.activeElement.textContent;
    facts.replaceChildren(list);
    if (focused) [...facts.querySelectorAll("a")].find((one) => one.textContent === focused)?.focus();
  };

  /// Returns the parameters of an instance that differ from the run's.
  const ownOf = (p) => Object.fromEntries(Object.entries(p).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify((data.run.parameters || {})[key])));
  // Returns the card of a metric that says how good the run is, compared with the run before and the best so far.
  const headlineOf = ({ n, v, i, w, a, l, b, low }) => {
    const runOf = (run) => options.run ? options.run(run) : name(run), isBetter = (one, other) => low ? one < other : one > other;
    const card = el("div", { class: "headline" }, el("div", { class: "dim title" }, breakingName(n)), el("div", { class: "big" }, figure(v)));
    const best = i && data.steps[places.get(w)], wasBest = l && b && l[0] === b[0], isBest = !b || !isBetter(b[1], v), isAlike = Math.abs(a - v) <= 1e-9 * Math.abs(v);
    if (i && isAlike) card.append(el("div", { class: "dim" }, "all " + count(i, "instance") + " alike"));
    else if (i) {
      const link = el("a", { href: "#steps" }, name(best && best.p ? pairs(ownOf(best.p)) : w));
      link.addEventListener("click", (event) => { event.preventDefault(); table.open(w); });
      card.append(el("div", { class: "dim" }, "best of " + count(i, "instance") + ": ", link, "; mean " + figure(+a.toPrecision(4))));
    }
    if (l && v === l[1]) card.append(el("div", {}, "as the run before" + (isBest ? ", the best so far" : "")));
    else if (l) card.append(el("div", {}, isBest ? "the best so far: " : "", el("span", { class: isBetter(v, l[1]) ? "better" : "worse" }, (isBetter(v, l[1]) ? "better" : "worse") + " by " + figure(+Math.abs(v - l[1]).toPrecision(3))), " than the run before (" + figure(l[1]) + (wasBest && !isBest ? ", the best so far" : "") + ")"));
    if (b && !isBest && !wasBest) card.append(el("div", { class: "dim" }, "best so far " + figure(b[1]) + ", run ", runOf(b[0])));
    return card;
  };
  const metricNameOf = (headline) => headline.n.slice(headline.n.indexOf(".") + 1);
  /// Returns the headlines in the pipeline's order if the pipeline names them, else by how much they say about the run's quality.
  const orderedHeadlines = () => {
    const isNamed = Object.values(data.declared).some((step) => step.headline), low = new Set(data.headlines.filter((one) => one.low).map(metricNameOf));
    return isNamed ? data.headlines : [...data.headlines].sort((a, b) => rankOf(metricNameOf(a), low, []) - rankOf(metricNameOf(b), low, []));
  };
  const drawResult = () => {
    const parts = [];
    if (data.failures.length) {
      // Each kind of failure in a line: its steps, its message and the last line that says why.
      const most = 3, all = data.failures.reduce((sum, one) => sum + one.c, 0);
      const why = ({ m, d }) => [m, (d || []).findLast((line) => line.trim() && !/^pipe: line \d+ ended/.test(line))].filter(Boolean).map((text) => shortened(text.trim())).join(": ");
      parts.push(el("div", { class: "short" }, el("a", { href: "#failed" }, count(all, "step") + " failed"), data.failures.length > most ? ", for " + data.failures.length + " reasons" : "",
        el("ul", {}, ...data.failures.slice(0, most).map((one) => el("li", {}, el("strong", {}, name(one.n[0]), one.c > 1 ? " and " + grouped(one.c - 1) + " alike" : ""), ": ", name(why(one)))))));
    }
    if (data.headlines.length) parts.push(el("div", { class: "headlines" + (data.headlines.length > 2 ? " many" : "") }, ...orderedHeadlines().map(headlineOf)));
    const before = [...new Set(data.headlines.flatMap(({ l }) => l ? [l[0]] : []))];
    if (before.length) parts.push(el("p", { class: "dim" }, "The run before: ", ...before.flatMap((run, i) => [i ? "; " : "", options.run ? options.run(run) : name(run), ...(options.compareAddress ? [", ", options.linkTo(options.compareAddress(run), "compare")] : [])])));
    if (data.published.length) parts.push(el("p", {}, "Published: ", ...data.published.flatMap(([version, output, digest], i) => [i ? ", " : "", el("strong", {}, name(version)), " (", options.artifact ? options.artifact(digest, output) : name(output), ")"])));
    result.replaceChildren(...parts);
    result.hidden = !parts.length;
  };
  // A form keeps what is typed: it is drawn again only if the questions have changed.
  let drawnQuestions = "";
  const drawQuestions = () => {
    const open = isRunning(data.run.status) && options.question ? (data.questions || []).filter((one) => !one.answer) : [];
    const now = JSON.stringify(open);
    if (now === drawnQuestions) return;
    drawnQuestions = now;
    questions.replaceChildren(...open.map((one) => options.question(one, (answered) => { Object.assign(one, answered); drawQuestions(); })));
    questions.hidden = !open.length;
  };

  // Equal failures share a card: its steps, its message, the hints and the end of the first step's log.
  const failureCard = (failure, isFirst) => {
    const [first, ...others] = failure.n, step = data.steps[places.get(first)], attempt = step && lastAttempt(step);
    const card = el("div", { class: "card" }, el("h3", {}, name(first), failure.c > 1 ? " and " + count(failure.c - 1, "more step") : null), el("div", {}, name(failure.m || "failed")));
    for (const hint of failure.h || []) card.append(el("div", { class: "hint" }, el("span", { class: "dim" }, "hint: "), name(hint)));
    if (others.length) card.append(el("details", { class: "gather" }, el("summary", {}, "All " + count(failure.c, "step")), el("ul", {}, ...failure.n.map((one) => el("li", {}, name(one)))), failure.c > failure.n.length ? el("p", { class: "dim" }, "and " + count(failure.c - failure.n.length, "more step")) : null));
    if (isFirst && attempt) card.append(options.log(step, attempt, step.a.length, "what failed", failure.rf === undefined ? null : linesOfRank(failure.rf)));
    else if (failure.d) card.append(wholeLog("The last lines of " + first, failure.d.join("\n") + "\n"));
    return card;
  };
  const drawFailed = (into) => {
    if (!data.failures.length) return false;
    into.append(...data.failures.map((failure, i) => failureCard(failure, i === 0)));
    const told = data.failures.reduce((sum, failure) => sum + failure.c, 0), all = data.steps.filter((step) => step.s === "failed").length;
    if (all > told) into.append(el("p", { class: "dim" }, "and " + count(all - told, "more step")));
    return true;
  };
  const drawPictures = (into) => {
    const pictures = data.pictures.filter((one) => !one.cells);
    if (!pictures.length) return false;
    const grid = el("div", { class: "curves" });
    for (const picture of pictures) grid.append(el("figure", { class: "picture" }, el("figcaption", {}, name(picture.name)), el("img", { src: picture.url || options.pictureOf(picture), alt: "Output " + clean(picture.name), loading: "lazy" })));
    into.append(grid);
    return true;
  };
  const drawEnvironments = (into) => {
    if (!data.images.length) return false;
    const users = new Map();
    for (const step of data.steps) for (const image of new Set([step.i, ...(step.a || []).map((attempt) => attempt.i)])) users.set(image, (users.get(image) || 0) + 1);
    const list = el("ul", {});
    data.images.forEach((image, i) => list.append(el("li", { class: "mono" }, name(image), " ", el("span", { class: "dim" }, count(users.get(i) || 0, "step")))));
    into.append(list);
    return true;
  };

  // Adds a section. `of` returns a summary of what the section shows; the section is drawn again only if the summary has changed.
  const part = (key, title, draw, of) => {
    const titleNode = el("h2", { id: key + "-title" }, title), body = el("div", {}), anchor = el("a", { href: "#" + key }, title);
    const node = el("section", { id: key, "aria-labelledby": key + "-title" }, titleNode, body);
    main.append(node);
    nav.append(anchor);
    let drawn = null;
    return {
      body,
      show() {
        const now = of();
        if (now === drawn) return;
        drawn = now;
        const old = body.querySelector(".scroll"), at = old && [old.scrollLeft, old.scrollTop], focused = old && old === document.activeElement, link = body.contains(document.activeElement) && document.activeElement.dataset.step;
        body.replaceChildren();
        node.hidden = anchor.hidden = !draw(body);
        const fresh = body.querySelector(".scroll");
        if (fresh && at) [fresh.scrollLeft, fresh.scrollTop] = at;
        if (fresh && focused) fresh.focus();
        if (link) [...body.querySelectorAll("[data-step]")].find((one) => one.dataset.step === link)?.focus();
      },
    };
  };
  let ticks = 0, leaderboard = null, curves = null, metrics = { rows: [], curves: new Map(), low: new Set() };
  const changing = () => isRunning(data.run.status) ? ticks : -1;
  const picturesPart = part("pictures", "Pictures", drawPictures, () => data.pictures.length);
  const failedPart = part("failed", "What failed", drawFailed, () => JSON.stringify(data.failures));
  // A single row whose metrics are all headlines says nothing new.
  const isTold = () => metrics.rows.length === 0 || (metrics.rows.length === 1 && Object.keys(metrics.rows[0].m).every((metric) => data.headlines.some((one) => one.n === metrics.rows[0].step + "." + metric)));
  const leaderboardSection = part("leaderboard", "Leaderboard", (into) => { leaderboard = isTold() ? null : leaderboardPart(into, options); return !!leaderboard; }, isTold);
  const curvesSection = part("curves", "Curves", (into) => metrics.curves.size > 0 && !!(curves = curvesPart(into, options, () => metrics.curves)), () => metrics.curves.size > 0);
  const showMetrics = () => {
    metrics = metricsOf(data);
    leaderboardSection.show();
    curvesSection.show();
    if (leaderboard) leaderboard.show(metrics.rows, metrics.low, orderedHeadlines().map(metricNameOf));
    if (curves) curves.show([...metrics.curves.keys()]);
  };
  const graphPart = part("graph", "Graph", (into) => drawGraph(data, into, (group) => group.n > 1 ? table.list(group.name + ".", "all") : table.open(group.name)), () => JSON.stringify([...groupsOf(data).values()].map((group) => [group.name, group.n, group.done, group.status])));
  const timelinePart = part("timeline", "Timeline", (into) => drawTimeline(data, into), () => [changing(), data.steps.reduce((n, step) => n + (step.a || []).length, 0), drawingWidth(main)].join());
  const notebooksPart = part("notebooks", "Notebooks", (into) => drawNotebooks(data, into), () => data.pictures.length);
  let table = null;
  const stepsPart = part("steps", "Steps", (into) => { table = stepTable(into, options); return true; }, () => 0);
  const environmentsPart = part("environments", "Environments", drawEnvironments, () => data.steps.reduce((n, step) => n + (step.i === undefined ? 0 : 1), 0));

  new ResizeObserver(() => { if (data && main.contains(timelinePart.body)) timelinePart.show(); }).observe(timelinePart.body);

  const draw = (changed) => {
    drawHead();
    drawQuestions();
    drawResult();
    for (const one of [picturesPart, failedPart, graphPart, timelinePart, notebooksPart, stepsPart, environmentsPart]) one.show();
    table.show(data, changed);
  };
  return {
    get data() { return data; },
    openStep(step) { table.open(step); },
    show(all) {
      const written = all.now, ahead = Date.now() - written;
      data = all;
      data.now = () => options.isLive ? Date.now() - ahead : written; // by the clock of the machine that wrote it
      places = new Map(data.steps.map((step, i) => [step.n, i]));
      showMetrics();
      draw(null);
    },
    change(changes) {
      if (changes.run) data.run = changes.run;
      for (const kind of ["failures", "headlines", "published", "questions"]) if (changes[kind]) data[kind] = changes[kind];
      if (changes.images) data.images = changes.images;
      if (changes.pictures) data.pictures = changes.pictures;
      if (changes.nodes) data.nodes = changes.nodes;
      if (changes.metrics) { data.metrics = changes.metrics; }
      for (const step of changes.steps || []) {
        if (!places.has(step.n)) { places.set(step.n, data.steps.length); data.steps.push(step); }
        else data.steps[places.get(step.n)] = step;
      }
      ++ticks;
      if (changes.metrics || changes.steps) showMetrics();
      draw(new Set((changes.steps || []).map((step) => step.n)));
    },
    tick() {
      if (!data || !isRunning(data.run.status)) return;
      ++ticks;
      drawHead();
      timelinePart.show();
      table.tick();
    },
  };
}
