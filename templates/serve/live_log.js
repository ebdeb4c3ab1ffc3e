// A log of any size: its end at first, earlier parts when they are asked for, and what is printed meanwhile.
function liveLog(runId, step, number, title, isOpen, leavesOut, belongs) {
  // Bytes: of an answer; of all that is shown; and of a log's growth that is not shown piece by piece.
  const most = 131072, mostShown = 2097152, mostBehind = 524288;
  const where = { run: runId, step, attempt: number };
  const box = logBox(title), said = el("span", { role: "status" });
  const button = (text, act) => { const node = el("button", { class: "plain", type: "button" }, text); node.addEventListener("click", act); return node; };
  let writer = null, from = 0, to = 0, size = 0, isOver = false;

  const reset = () => { box.replaceChildren(); writer = logWriter(box, leavesOut, belongs); };
  const say = () => {
    beginning.disabled = earlier.disabled = from === 0;
    later.disabled = to >= size;
    said.textContent = size === 0 ? (isOver ? "No output." : "Nothing has been printed yet.") : from === 0 && to >= size ? bytes(size) : bytes(from) + " to " + bytes(to) + " of " + bytes(size);
    box.hidden = whole.hidden = size === 0;
    beginning.hidden = earlier.hidden = later.hidden = end.hidden = from === 0 && to >= size;
  };
  const isAtBottom = () => box.scrollHeight - box.scrollTop - box.clientHeight < 24;
  const take = (part) => { to = part.to; size = part.size; isOver = part.over; if (part.text) writer.put(part.text); };
  // One request at a time, because the range of each depends on the answer to the one before.
  let busy = Promise.resolve();
  const ask = (parameters, use) => busy = busy.then(async () => {
    const part = await api("/api/log", { ...where, most, ...parameters() });
    if (part) { use(part); say(); }
  });
  const begin = (scrollsDown) => (part) => { reset(); from = part.from; take(part); box.scrollTop = scrollsDown ? box.scrollHeight : 0; };
  const showEnd = () => ask(() => ({}), begin(true));
  const beginning = button("Beginning", () => ask(() => ({ from: 0 }), begin(false)));
  const earlier = button("Earlier", () => ask(() => ({ before: from }), begin(true)));
  const later = button("Later", () => ask(() => ({ from: to }), begin(false)));
  const end = button("End", showEnd);
  const whole = el("a", { href: dataAddress("/api/whole-log", where), download: "" }, "Download");
  // While the page is visible and shows the end, more is fetched, until the server says that the attempt has ended.
  const follow = () => {
    if (isOver || wasRemoved()) return;
    if (document.hidden || to < size) { setTimeout(follow, 500); return; }
    const last = !isOpen(), wasAtBottom = isAtBottom();
    ask(() => ({ from: to }), (part) => {
      if (part.size - to > mostBehind || to - from > mostShown) { showEnd(); return; }
      take(part);
      if (wasAtBottom) box.scrollTop = box.scrollHeight;
    }).then(() => { if (!last) setTimeout(follow, 500); });
  };
  let wasShown = false;
  const wasRemoved = () => { wasShown = wasShown || node.isConnected; return wasShown && !node.isConnected; };
  reset();
  const node = el("div", {}, el("div", { class: "logbar" }, beginning, earlier, later, end, whole, said), box);
  showEnd().then(follow);
  return node;
}
