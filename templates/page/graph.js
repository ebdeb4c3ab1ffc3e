// The graph: a node for each step, or for all instances of one (no library: src/report/README.md).
// The statuses, the worst first: a group of instances shows its worst one.
const worst = ["failed", "running", "cancelled", "skipped", "pending", "succeeded", "cached"];
const base = (step) => step.b || step.n;

/// Returns a group for each step, or for all instances of one, keyed by its name.
function groupsOf(data) {
  const groups = new Map();
  for (const step of data.steps) {
    const group = groups.get(base(step)) || { name: base(step), n: 0, status: "cached", needs: [], done: 0, count: new Map() };
    ++group.n;
    group.count.set(step.s, (group.count.get(step.s) || 0) + 1);
    if (step.s !== "pending" && step.s !== "running") ++group.done;
    if (worst.indexOf(step.s) < worst.indexOf(group.status)) group.status = step.s;
    groups.set(group.name, group);
  }
  for (const group of groups.values()) group.needs = ((data.declared[group.name] || {}).needs || []).filter((one) => groups.has(one) && one !== group.name);
  return groups;
}

/// Returns at most `most` groups: of a larger graph those that failed and what they need, else the first ones.
function shownGroups(groups, most) {
  if (groups.size <= most) return [...groups.values()];
  const chosen = new Set(), waiting = [...groups.values()].filter((group) => group.status === "failed");
  if (!waiting.length) waiting.push(...[...groups.values()].slice(0, most));
  while (waiting.length && chosen.size < most) {
    const group = waiting.shift();
    if (chosen.has(group)) continue;
    chosen.add(group);
    waiting.push(...group.needs.map((one) => groups.get(one)));
  }
  return [...groups.values()].filter((group) => chosen.has(group));
}

// Returns the column of each step: after all steps that it needs. A step without needs stands just before the first step that uses it.
function depths(groups, list) {
  const inside = new Set(list), depth = new Map(), needs = (group) => group.needs.map((one) => groups.get(one)).filter((one) => inside.has(one));
  // Iterative, because a chain may have thousands of steps.
  for (const start of list) {
    const stack = [[start, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1], group = top[0];
      if (depth.has(group)) { stack.pop(); continue; }
      const next = needs(group)[top[1]++];
      if (next !== undefined) {
        if (!depth.has(next) && !stack.some((entry) => entry[0] === next)) stack.push([next, 0]);
        continue;
      }
      depth.set(group, 1 + Math.max(-1, ...needs(group).map((one) => depth.has(one) ? depth.get(one) : -1)));
      stack.pop();
    }
  }
  const first = new Map();
  for (const group of list) for (const one of needs(group)) first.set(one, Math.min(first.has(one) ? first.get(one) : Infinity, depth.get(group)));
  for (const [group, at] of first) if (!needs(group).length) depth.set(group, at - 1);
  return depth;
}

// Returns the columns of the drawing. A column has steps, and lines that pass it on their way to a later column; a step has one such line for all steps that use it there.
function layout(groups, list) {
  const depth = depths(groups, list), columns = [], items = new Map();
  const put = (x, group, height) => { const item = { x, group, height, before: [], after: [] }; (columns[x] = columns[x] || []).push(item); return item; };
  const join = (a, b) => { a.after.push(b); b.before.push(a); };
  for (const group of [...depth.keys()]) items.set(group, [put(depth.get(group), group, 54)]);
  for (const group of depth.keys()) for (const one of group.needs.map((name) => groups.get(name)).filter((one) => depth.has(one) && depth.get(one) < depth.get(group))) {
    const line = items.get(one); // the step itself, then its line in each column
    while (depth.get(one) + line.length < depth.get(group)) { const passing = put(depth.get(one) + line.length, null, 18); join(line[line.length - 1], passing); line.push(passing); }
    join(line[depth.get(group) - depth.get(one) - 1], items.get(group)[0]);
  }
  return sorted(Array.from(columns, (column) => column || []));
}

// Orders each column so that few lines cross: each item goes to the mean height of its neighbours, over and over, and the best order is kept.
function sorted(columns) {
  const sweeps = 24, sum = (list, of) => list.reduce((all, one) => all + of(one), 0), heightOf = (column) => sum(column, (item) => item.height);
  const tallest = Math.max(...columns.map(heightOf));
  const settle = (column) => { let y = (tallest - heightOf(column)) / 2; for (const item of column) { item.y = y + item.height / 2; y += item.height; } };
  const crossings = () => sum(columns, (column) => {
    const lines = column.flatMap((item) => item.after.map((one) => [item.y, one.y]));
    return sum(lines, ([a, b]) => lines.filter(([c, d]) => a < c && b > d).length);
  });
  columns.forEach(settle);
  let best = columns.map((column) => [...column]), fewest = crossings();
  for (let sweep = 0; sweep < sweeps && fewest > 0; ++sweep) {
    const neighbours = sweep % 4 > 1 ? (item) => [...item.before, ...item.after] : sweep % 2 ? (item) => item.after : (item) => item.before;
    for (const column of sweep % 2 ? [...columns].reverse() : columns) {
      for (const item of column) { const near = neighbours(item); item.mean = near.length ? sum(near, (one) => one.y) / near.length : item.y; }
      settle(column.sort((a, b) => a.mean - b.mean));
    }
    const now = crossings();
    if (now < fewest) { fewest = now; best = columns.map((column) => [...column]); }
  }
  best.forEach(settle);
  return { columns: best, height: tallest };
}

// Returns how many of a group's instances have the status that the group shows: ` 3 of 10`.
function ofInstances(group) {
  if (group.n === 1) return "";
  if (group.status === "running") return " " + grouped(group.done) + "/" + grouped(group.n);
  const same = group.count.get(group.status);
  return same === group.n ? " \u00d7 " + grouped(group.n) : " " + grouped(same) + " of " + grouped(group.n);
}

/// Draws the graph; returns false if there is none.
/// @param open follows the link of a group of steps
function drawGraph(data, into, open) {
  const groups = groupsOf(data);
  if (!groups.size) return false;
  const most = 150, list = shownGroups(groups, most), { columns, height: tallest } = layout(groups, list);
  if (list.length < groups.size) into.append(el("p", { class: "dim" }, "The pipeline has " + count(groups.size, "step") + "; the graph shows " + list.length + (list.some((group) => group.status === "failed") ? ": those that failed, and what they need." : " of them.")));
  const shownName = (group) => { const all = clean(group.name); return all.length > 22 ? all.slice(0, 21) + "\u2026" : all; };
  const state = (group) => word(group.status) + ofInstances(group);
  const letters = Math.max(...list.map((group) => Math.max(shownName(group).length, state(group).length * 0.9)));
  const nodeWidth = Math.min(168, Math.max(104, Math.round(26 + letters * 7.2))), nodeHeight = 40, gap = 56, pad = 12, left = (item) => pad + item.x * (nodeWidth + gap);
  const height = pad + tallest, width = pad * 2 + columns.length * (nodeWidth + gap) - gap, middle = (item) => pad / 2 + item.y;
  const widest = 1500; // a drawing of this width is still legible where a wide page shrinks it
  const drawing = svg("svg", { width, height, class: width <= widest ? "shrinks" : "", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Graph of " + count(list.length, "step") + "; the table of steps lists the same" });
  for (const item of columns.flat()) {
    const x1 = left(item) + nodeWidth, y1 = middle(item), bend = gap / 2;
    if (!item.group) drawing.append(svg("path", { class: "edge", d: `M${left(item)} ${y1}H${x1}` }));
    for (const next of item.after) { const x2 = left(next), y2 = middle(next); drawing.append(svg("path", { class: "edge", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` })); }
  }
  for (const item of columns.flat()) {
    if (!item.group) continue;
    const group = item.group, x = left(item), y = middle(item) - nodeHeight / 2;
    const node = svg("a", { class: "node", href: "#steps", "data-step": group.name, "aria-label": clean(group.name) + ": " + state(group) },
      svg("title", {}, group.name + ": " + word(group.status) + (group.n > 1 ? ", " + grouped(group.n) + " instances" : "")),
      svg("rect", { class: "box", x, y, width: nodeWidth, height: nodeHeight, rx: 4 }),
      svg("rect", { class: "f-" + group.status, x, y, width: 5, height: nodeHeight, rx: 2 }),
      svg("text", { x: x + 14, y: y + 17 }, shownName(group)),
      svg("text", { class: "small", x: x + 14, y: y + 32 }, state(group)));
    node.addEventListener("click", (event) => { event.preventDefault(); open(group); });
    drawing.append(node);
  }
  into.append(scroller("Drawing of the graph", drawing));
  return true;
}
