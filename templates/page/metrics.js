// Metrics of a run: its instances as a leaderboard, and a chart of curves for each name.
// `options.curves(name, range)` asks for curves; without it they are in the data.
function metricsOf(data) {
  const places = new Map(data.steps.map((step) => [step.n, step])), rows = new Map(), curves = new Map(), low = new Set();
  for (const metric of data.metrics) {
    const step = places.get(metric.step) || {}, p = step.p || {};
    if (!rows.has(metric.step)) rows.set(metric.step, { run: data.run.id, step: metric.step, b: step.b || metric.step, s: step.s, p, m: {} });
    rows.get(metric.step).m[metric.name] = metric.last;
    if (metric.low) low.add(metric.name);
    if (metric.points > 1) { if (!curves.has(metric.name)) curves.set(metric.name, []); curves.get(metric.name).push({ run: data.run.id, step: metric.step, p, points: metric.points, last: metric.last, curve: metric.curve, restarts: metric.restarts }); }
  }
  // Instances that failed before they reported anything are counted beside the others.
  const bases = new Set([...rows.values()].map((row) => row.b));
  for (const step of data.steps) if (step.s === "failed" && step.b && bases.has(step.b) && !rows.has(step.n)) rows.set(step.n, { run: data.run.id, step: step.n, b: step.b, s: step.s, p: step.p || {}, m: {} });
  return { rows: [...rows.values()], curves, low };
}

function leaderboardPart(into, options) {
  const leaderboard = leaderboardView(into, { query: options.query, href: options.stepAddress && ((row) => options.stepAddress(row.step)), open: options.open, linkTo: options.linkTo });
  if (options.leaderboardAddress) into.append(el("p", {}, options.linkTo(options.leaderboardAddress(), "Filter, and compare with other runs")));
  return leaderboard;
}

function curvesPart(into, options, curvesNow) {
  return curvesView(into, (metric, range) => options.curves ? options.curves(metric, range) : Promise.resolve(curvesNow().get(metric)), { finer: !!options.curves, query: options.query });
}
