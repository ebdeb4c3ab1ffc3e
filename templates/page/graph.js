// The graph: a node for each step, or for all instances of one.
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
  const result = [];
  for (const group of order) (result[depth.get(group)] = result[depth.get(group)] || []).push(group);
  const place = new Map();
  result.forEach((layer) => layer.forEach((group, i) => place.set(group, i)));
  const mean = (group, neighbours) => {
    const places = neighbours.filter((one) => place.has(one)).map((one) => place.get(one));
    return places.length ? places.reduce((a, b) => a + b, 0) / places.length : place.get(group);
  };
  const users = new Map(list.map((group) => [group, []]));
  for (const group of list) for (const one of group.needs) if (users.has(groups.get(one))) users.get(groups.get(one)).push(group);
  for (let pass = 0; pass < 4; ++pass) { // fewer crossings: each beside the mean of its neighbours
    const sweep = pass % 2 ? [...result].reverse() : result;
    for (const layer of sweep) {
      const at = new Map(layer.map((group) => [group, mean(group, pass % 2 ? users.get(group) : group.needs.map((one) => groups.get(one)))]));
      layer.sort((a, b) => at.get(a) - at.get(b)).forEach((group, i) => place.set(group, i));
    }
  }
  return result;
}

// How many of a step's instances have the state that stands for all of them.
function ofInstances(group) {
  if (group.n === 1) return "";
  if (group.status === "running") return " " + group.done + "/" + group.n;
  const same = group.count.get(group.status);
  return same === group.n ? " \u00d7 " + group.n : " " + same + " of " + group.n;
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
      svg("title", {}, group.name + ": " + word(group.status) + (group.n > 1 ? ", " + group.n + " instances" : "")),
      svg("rect", { class: "box", x, y, width: nodeWidth, height: nodeHeight, rx: 4 }),
      svg("rect", { class: "f-" + group.status, x, y, width: 5, height: nodeHeight, rx: 2 }),
      svg("text", { x: x + 14, y: y + 17 }, shown.length > 22 ? shown.slice(0, 21) + "\u2026" : shown),
      svg("text", { class: "small", x: x + 14, y: y + 32 }, word(group.status) + ofInstances(group))));
  }
  into.append(scroller("Drawing of the graph", drawing));
  return true;
}
