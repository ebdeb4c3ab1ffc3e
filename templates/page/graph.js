// The graph: a node for each step, or for all instances of one (no library: docs/architecture.md, "The pages").
const worst = ["failed", "running", "cancelled", "skipped", "pending", "succeeded", "cached"];
const base = (step) => step.b || step.n;

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
function layers(groups, list) {
  const inside = new Set(list), depth = new Map();
  const order = [];
  // Iterative, because a chain may have thousands of steps.
  for (const start of list) {
    const stack = [[start, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1];
      if (depth.has(top[0])) { stack.pop(); continue; }
      const next = top[0].needs[top[1]++];
      if (next !== undefined) {
        const group = groups.get(next);
        if (inside.has(group) && !depth.has(group) && !stack.some((entry) => entry[0] === group)) stack.push([group, 0]);
        continue;
      }
      depth.set(top[0], 1 + Math.max(-1, ...top[0].needs.map((one) => depth.has(groups.get(one)) ? depth.get(groups.get(one)) : -1)));
      order.push(top[0]);
      stack.pop();
    }
  }
  const users = new Map(list.map((group) => [group, []]));
  for (const group of list) for (const one of group.needs) if (users.has(groups.get(one))) users.get(groups.get(one)).push(group);
  // A step without needs stands beside the first that uses it.
  for (const group of list) if (users.get(group).length && !group.needs.some((one) => inside.has(groups.get(one)))) depth.set(group, Math.min(...users.get(group).map((one) => depth.get(one))) - 1);
  const result = [];
  for (const group of order) (result[depth.get(group)] = result[depth.get(group)] || []).push(group);
  return sorted(result, (group) => group.needs.map((one) => groups.get(one)).filter((one) => inside.has(one)), (group) => users.get(group));
}

// Orders the steps within each column so that few lines cross: each goes to the mean height of its neighbours, over and over, and the best order is kept.
function sorted(columns, needs, users) {
  const sweeps = 24, tallest = Math.max(...columns.map((column) => column.length)), place = new Map();
  const settle = (column) => column.forEach((group, i) => place.set(group, i + (tallest - column.length) / 2));
  columns.forEach(settle);
  const spots = new Map(columns.flatMap((column, x) => column.map((group) => [group, x])));
  const lines = columns.flat().flatMap((group) => needs(group).map((one) => [one, group]));
  const side = (a, b, c) => Math.sign((spots.get(b) - spots.get(a)) * (place.get(c) - place.get(a)) - (place.get(b) - place.get(a)) * (spots.get(c) - spots.get(a)));
  const crosses = ([a, b], [c, d]) => spots.get(a) < spots.get(d) && spots.get(c) < spots.get(b) && side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0;
  const crossings = () => lines.reduce((sum, line, i) => { for (let k = i + 1; k < lines.length; ++k) if (crosses(line, lines[k])) ++sum; return sum; }, 0);
  let best = columns.map((column) => [...column]), fewest = crossings();
  for (let sweep = 0; sweep < sweeps && fewest > 0; ++sweep) {
    const neighbours = sweep % 4 < 2 ? [needs, users][sweep % 2] : (group) => [...needs(group), ...users(group)];
    for (const column of sweep % 2 ? [...columns].reverse() : columns) {
      const mean = new Map(column.map((group) => { const near = neighbours(group); return [group, near.length ? near.reduce((sum, one) => sum + place.get(one), 0) / near.length : place.get(group)]; }));
      settle(column.sort((a, b) => mean.get(a) - mean.get(b)));
    }
    const now = crossings();
    if (now < fewest) { fewest = now; best = columns.map((column) => [...column]); }
  }
  return best;
}

// How many of a step's instances have the state that stands for all of them.
function ofInstances(group) {
  if (group.n === 1) return "";
  if (group.status === "running") return " " + grouped(group.done) + "/" + grouped(group.n);
  const same = group.count.get(group.status);
  return same === group.n ? " \u00d7 " + grouped(group.n) : " " + grouped(same) + " of " + grouped(group.n);
}

function drawGraph(data, into) {
  const groups = groupsOf(data);
  if (!groups.size) return false;
  const most = 150, list = shownGroups(groups, most), columns = layers(groups, list);
  if (list.length < groups.size) into.append(el("p", { class: "dim" }, "The pipeline has " + count(groups.size, "step") + "; the graph shows " + list.length + (list.some((group) => group.status === "failed") ? ": those that failed, and what they need." : " of them.")));
  const nodeWidth = 168, nodeHeight = 40, gapX = 56, gapY = 14, pad = 12;
  const tallest = Math.max(...columns.map((column) => column.length));
  const height = pad * 2 + tallest * (nodeHeight + gapY) - gapY, width = pad * 2 + columns.length * (nodeWidth + gapX) - gapX;
  const spot = new Map();
  columns.forEach((column, x) => column.forEach((group, y) => spot.set(group, {
    x: pad + x * (nodeWidth + gapX), y: pad + (y + (tallest - column.length) / 2) * (nodeHeight + gapY) })));
  const widest = 1500; // is still legible where a wide page shrinks it
  const drawing = svg("svg", { width, height, class: width <= widest ? "shrinks" : "", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Graph of " + count(list.length, "step") + "; the table of steps lists the same" });
  for (const group of list) for (const one of group.needs) {
    const from = spot.get(groups.get(one)), to = spot.get(group);
    if (!from || !to) continue;
    const x1 = from.x + nodeWidth, y1 = from.y + nodeHeight / 2, x2 = to.x, y2 = to.y + nodeHeight / 2, bend = Math.max(24, (x2 - x1) / 2);
    drawing.append(svg("path", { class: "edge", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}` }));
  }
  for (const group of list) {
    const { x, y } = spot.get(group), shown = clean(group.name);
    drawing.append(svg("g", { class: "node" },
      svg("title", {}, group.name + ": " + word(group.status) + (group.n > 1 ? ", " + grouped(group.n) + " instances" : "")),
      svg("rect", { class: "box", x, y, width: nodeWidth, height: nodeHeight, rx: 4 }),
      svg("rect", { class: "f-" + group.status, x, y, width: 5, height: nodeHeight, rx: 2 }),
      svg("text", { x: x + 14, y: y + 17 }, shown.length > 22 ? shown.slice(0, 21) + "\u2026" : shown),
      svg("text", { class: "small", x: x + 14, y: y + 32 }, word(group.status) + ofInstances(group))));
  }
  into.append(scroller("Drawing of the graph", drawing));
  return true;
}
