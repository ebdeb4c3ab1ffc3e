// The use of the machine that `pipe serve` runs on.
function machinePage(head, main) {
  head.append(el("h1", {}, "Machine"));
  const busy = [], box = el("div", {}), meters = new Map();
  main.append(box);
  const meter = (title, share, text) => {
    if (!meters.has(title)) {
      const label = el("div", {}), bar = el("meter", { min: 0, max: 1, "aria-label": clean(title) });
      meters.set(title, { label, bar });
      box.append(el("div", { class: "use" }, el("h2", {}, name(title)), bar, label));
    }
    const { label, bar } = meters.get(title);
    bar.value = share;
    label.replaceChildren(text instanceof Node ? text : name(text));
    return meters.get(title);
  };
  const part = (use) => use.used / (use.total || 1);
  const amount = (use) => bytes(use.used) + " of " + bytes(use.total) + " used";
  const curve = svg("svg", { viewBox: "0 0 300 60", width: "100%", height: 60, preserveAspectRatio: "none", class: "use-curve", role: "img", "aria-label": "Use of the processors in the last minutes" });
  const draw = (now) => {
    if (now.busy !== undefined) { busy.push(now.busy); if (busy.length > 150) busy.shift(); }
    meter("Processors", now.busy || 0, (now.busy === undefined ? count(now.processors, "processor") : Math.round(now.busy * 100) + " % of " + count(now.processors, "processor") + " busy") + (now.load === undefined ? "" : ", load " + now.load.toFixed(2))).label.append(curve);
    curve.replaceChildren(svg("polyline", { class: "curve", points: busy.map((share, i) => (300 - (busy.length - 1 - i) * 2) + "," + (58 - share * 56).toFixed(1)).join(" ") }));
    if (now.memory) meter("Memory", part(now.memory), amount(now.memory));
    if (now.disk) meter("Disk of the state folder", part(now.disk), amount(now.disk));
    for (const gpu of now.gpus) {
      const title = "GPU " + gpu.index + ": " + gpu.model;
      meter(title, gpu.memory ? gpu.memory_used / gpu.memory : 0, gpu.trouble || (typeof gpu.load === "number" ? percent(gpu.load) + " busy, " : "") + bytes(gpu.memory_used) + " of " + bytes(gpu.memory) + " used" + (gpu.processes.length ? ", by " + gpu.processes.map((one) => (one.name || "process") + " " + one.pid).join(", ") : ""));
    }
    if (!now.gpus.length && !document.getElementById("no-gpu")) box.append(el("p", { class: "dim", id: "no-gpu" }, "This machine has no GPU that pipe can see: ", el("code", {}, "pipe gpus"), " says why."));
  };
  return listen({ machine: 1 }, { machine: draw });
}
