// Where a run's time went: each step's waits by their reason, the chain of steps that the run's end waited for, and advice.
const phaseNames = ["waiting", "preparing", "running", "storing", "transfers"];

const waitNames = { retry: "waiting to retry", store: "waiting for the remote store", image: "waiting for its image", answer: "waiting for an answer", step: "waiting for an equal step", limit: "waiting for a limit", gpus: "waiting for GPUs", slot: "waiting for a slot" };
const waitOf = (attempt) => (attempt.h || [0])[0] || 0;

/// Returns an attempt's parts, in order: [kind, milliseconds]. A wait is named after its reason; earlier versions of pipe recorded only the sum of all waits.
function partsOf(data, step, attempt, number) {
  const took = duration(data, attempt), [waiting, preparing, running, storing, transfers] = attempt.h || [0, 0, took, 0];
  const usual = number > 0 ? "retry" : attempt.q ? "gpus" : "slot", waits = attempt.hw || {}, known = Object.values(waits).reduce((sum, ms) => sum + ms, 0);
  const of = (kind) => (waits[kind] || 0) + (kind === usual ? Math.max(0, waiting - known) : 0);
  return [...Object.entries(waitNames).map(([kind, text]) => [text, of(kind)]).filter(([, ms]) => ms > 0), [data.run.orchestrator === "kubernetes" ? "cluster" : "preparing", preparing], ["transfers", transfers || 0], ["running", running], ["storing", storing]];
}

const endOf = (data, attempt) => attempt.t + Math.max(duration(data, attempt), 1);

/// Returns the chain of steps that the run's end waited for: the last step to end, before it the one of its needs that ended last, and so on. Each has `step`, `gap`
/// (milliseconds from the end of its needs to its first wait: its environment was made, or a limit or an answer was awaited) and `parts` (milliseconds by kind).
function criticalPath(data) {
  const ran = data.steps.filter((step) => step.a && step.a.length), byBase = new Map();
  for (const step of ran) { if (!byBase.has(base(step))) byBase.set(base(step), []); byBase.get(base(step)).push(step); }
  const end = (step) => endOf(data, step.a[step.a.length - 1]), begin = (step) => step.a[0].t - waitOf(step.a[0]);
  let step = ran.reduce((last, one) => !last || end(one) > end(last) ? one : last, null);
  const path = [];
  for (const seen = new Set(); step && !seen.has(step);) {
    seen.add(step);
    const needs = ((data.declared[base(step)] || {}).needs || []).flatMap((need) => byBase.get(need) || []).filter((one) => end(one) <= step.a[0].t + 50);
    const before = needs.reduce((last, one) => !last || end(one) > end(last) ? one : last, null), parts = new Map();
    step.a.forEach((attempt, i) => { for (const [kind, ms] of partsOf(data, step, attempt, i)) parts.set(kind, (parts.get(kind) || 0) + ms); });
    const ready = before ? end(before) : 0, failed = step.a.slice(0, -1).reduce((sum, attempt) => sum + duration(data, attempt), 0);
    path.unshift({ step, before, ready, gap: Math.max(0, begin(step) - ready), parts, failed });
    step = before;
  }
  return path;
}

// Waits that there would not be if everything ran at once.
const avoidable = new Set(["waiting for a slot", "waiting for GPUs", "waiting for a limit", "waiting for an equal step"]);

/// Returns the milliseconds that the run would take at least, if no step had to wait: its longest chain.
function longestChain(data) {
  const longest = new Map(), known = new Map();
  for (const step of data.steps) {
    const ms = (step.a || []).reduce((sum, attempt, i) => sum + partsOf(data, step, attempt, i).reduce((all, [kind, part]) => all + (avoidable.has(kind) ? 0 : part), 0), 0);
    longest.set(base(step), Math.max(longest.get(base(step)) || 0, ms));
  }
  const chain = (one, open) => {
    if (known.has(one)) return known.get(one);
    if (open.has(one)) return 0; // a step that is repeated names itself
    open.add(one);
    const total = (longest.get(one) || 0) + Math.max(0, ...((data.declared[one] || {}).needs || []).map((need) => chain(need, open)));
    open.delete(one);
    known.set(one, total);
    return total;
  };
  return Math.max(0, ...[...longest.keys()].map((one) => chain(one, new Set())));
}

/// Returns sentences about what would have made the run shorter, the one about the most time first.
function adviceOf(data, path, end) {
  const spent = new Map(), told = [], least = Math.max(end * 0.05, 100);
  for (const { parts, gap } of path) { spent.set("held back", (spent.get("held back") || 0) + gap); for (const [kind, ms] of parts) spent.set(kind, (spent.get(kind) || 0) + ms); }
  const add = (ms, text) => { if (ms >= least) told.push([ms, text]); };
  const without = longestChain(data), waits = (kind) => Math.min(spent.get(kind) || 0, Math.max(0, end - without));
  add(waits("waiting for a slot"), "More steps at a time (--jobs) would save up to " + time(waits("waiting for a slot")) + ": without waits for a slot, the run takes at least " + time(without) + ".");
  add(waits("waiting for GPUs"), "More GPUs, or fewer of them a step, would save up to " + time(waits("waiting for GPUs")) + ".");
  add(spent.get("cluster") || 0, "The cluster needed " + time(spent.get("cluster") || 0) + " to start pods and pull their images: smaller images, or nodes that have them, save it.");
  add(waits("waiting for a limit"), "A limit held steps back for " + time(waits("waiting for a limit")) + ": more of it (limits, max_parallel) saves that.");
  add(spent.get("waiting for its image") || 0, "Images and environments took " + time(spent.get("waiting for its image") || 0) + ": `pipe build` makes them before a run.");
  add(spent.get("waiting for an answer") || 0, "A question waited " + time(spent.get("waiting for an answer") || 0) + " for its answer.");
  add(spent.get("waiting for the remote store") || 0, "The remote store was asked for " + time(spent.get("waiting for the remote store") || 0) + " for results.");
  add(spent.get("held back") || 0, "Steps began " + time(spent.get("held back") || 0) + " after what they need had ended.");
  add(spent.get("preparing") || 0, "Starting containers and processes took " + time(spent.get("preparing") || 0) + ": fewer, longer steps save it.");
  add((spent.get("transfers") || 0) + (spent.get("storing") || 0), "Inputs and outputs took " + time((spent.get("transfers") || 0) + (spent.get("storing") || 0)) + ": fewer or smaller files save it.");
  const failed = path.reduce((sum, one) => sum + one.failed, 0);
  add(failed, "Attempts that failed took " + time(failed) + ": a checkpoint lets the next attempt continue.");
  const slowest = path.reduce((most, one) => !most || (one.parts.get("running") || 0) > (most.parts.get("running") || 0) ? one : most, null), ran = slowest && slowest.parts.get("running") || 0;
  const others = slowest ? data.steps.filter((step) => step !== slowest.step && base(step) === base(slowest.step) && step.a).map((step) => step.a.reduce((sum, attempt) => sum + (attempt.h ? attempt.h[2] : attempt.d), 0)) : [];
  const saved = Math.max(0, ran - Math.max(0, ...others));
  add(ran, slowest && "The command of " + clean(slowest.step.n) + " is the longest on the critical path, " + time(ran) + (!others.length ? ": each second less there makes the run a second shorter." : saved < least ? "; other instances take as long, so the step as a whole would have to be faster." : "; the next instance takes " + time(saved) + " less."));
  return told.sort((a, b) => b[0] - a[0]).map(([, text]) => text);
}

/// The critical path in words, and the advice.
function drawPath(data, path, end) {
  const kinds = new Map(), total = path.reduce((sum, one) => sum + one.gap + [...one.parts.values()].reduce((all, ms) => all + ms, 0), 0);
  for (const { parts, gap } of path) { for (const [kind, ms] of parts) kinds.set(kind, (kinds.get(kind) || 0) + ms); kinds.set("held back", (kinds.get("held back") || 0) + gap); }
  const shown = path.length > 12 ? [...path.slice(0, 6), null, ...path.slice(-6)] : path;
  const advice = adviceOf(data, path, end), parts = [...kinds].filter(([, ms]) => ms >= total / 100).sort((a, b) => b[1] - a[1]);
  return el("div", { class: "critical-path" }, el("p", {}, "Critical path, " + time(total) + ": ", ...shown.flatMap((one, i) => [i ? " \u2192 " : "", one ? name(one.step.n) : "\u2026"]), ". ", el("span", { class: "dim" }, parts.map(([kind, ms]) => kind + " " + time(ms)).join(", ") + ".")),
    advice.length ? el("div", {}, el("h3", {}, isRunning(data.run.status) ? "What would make it shorter" : "What would have made it shorter"), el("ul", {}, ...advice.map((text) => el("li", {}, text)))) : "");
}
