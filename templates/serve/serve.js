// The live page: one view at a time, by the address's path.
const head = document.getElementById("head"), main = document.getElementById("main"), stateLine = document.getElementById("state");
const views = [["/", "Runs"], ["/leaderboard", "Leaderboard"], ["/machine", "Machine"]];

// The token stays in this origin's storage, which no other port can read, unlike a cookie.
const here = new URL(location.href);
if (here.searchParams.has("token")) {
  localStorage.setItem("token", here.searchParams.get("token"));
  here.searchParams.delete("token");
  history.replaceState(null, "", here.pathname + here.search + here.hash);
}

/// Returns an address of data that the browser fetches by itself, so that the token has to be part of the address.
function dataAddress(path, parameters) {
  const words = new URLSearchParams(parameters);
  words.set("token", localStorage.getItem("token"));
  return path + "?" + words;
}

function showError(text) {
  const old = document.getElementById("error");
  if (old) old.remove();
  if (text) main.prepend(el("p", { class: "error", id: "error", role: "alert" }, text));
}

/// Returns what the server answers; null after an error, which the page then shows.
async function api(path, parameters) {
  try {
    const answer = await fetch(path + "?" + new URLSearchParams(parameters), { headers: { Authorization: "Bearer " + localStorage.getItem("token") } });
    if (answer.ok) { showError(""); return await answer.json(); }
    showError((await answer.text()).trim());
  } catch (error) {
    showError("pipe serve does not answer: it may have ended.");
  }
  return null;
}

/// Listens to events while the page is visible. Returns the function that stops listening.
function listen(parameters, handlers) {
  let source = null;
  const begin = () => {
    if (source || document.hidden) return;
    source = new EventSource(dataAddress("/api/events", parameters));
    source.onopen = () => { stateLine.textContent = "Live."; };
    source.onerror = () => { stateLine.textContent = "Not connected."; };
    for (const [kind, handle] of Object.entries(handlers)) source.addEventListener(kind, (event) => handle(JSON.parse(event.data)));
  };
  const end = () => { if (source) source.close(); source = null; stateLine.textContent = ""; };
  const turn = () => { if (document.hidden) end(); else begin(); };
  document.addEventListener("visibilitychange", turn);
  begin();
  return () => { document.removeEventListener("visibilitychange", turn); end(); };
}

/// A link within the page.
function link(path, text) {
  const node = el("a", { href: path }, name(text));
  node.addEventListener("click", (event) => {
    if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(path);
  });
  return node;
}

function go(path) {
  history.pushState(null, "", path);
  show();
  main.focus();
  scrollTo(0, 0);
}

/// Asks for the curves of a metric; with a range, for more values of that part.
function askedCurves(runs, metric, range) {
  const words = new URLSearchParams(runs.map((run) => ["run", run]));
  words.set("name", metric);
  for (const [key, value] of Object.entries(range || {})) words.set(key, value);
  return api("/api/curves", words);
}

function runPage(id) {
  const isShown = shownView();
  let leave = () => {}, isLive = false;
  const view = runView(head, main, {
    isLive: true,
    run: (other) => /^\d{8}-\d{6}-[0-9a-z]+$/.test(other) ? link("/run/" + other, other) : name(other),
    log: (step, attempt, number, what, belongs) => liveLog(id, step.n, number, logName(step.n, number, what), () => isRunning(view.data.run.status), what && isOnlyMetric, belongs),
    output: ([output, file, size, digest, isFolder]) => el("span", {}, name(output), " (",
      isFolder ? name(file) : el("a", { href: dataAddress("/api/artifact", { digest, name: file }), download: "" }, name(file)), ", " + bytes(size) + ", ", link("/artifact/" + digest, digest.slice(0, 12)), ")"),
    question: (question, done) => questionForm({ run: id, ...question }, localStorage.getItem("token"), done),
    details: (step) => api("/api/step", { run: id, step: step.n }),
    artifact: (digest, text) => link("/artifact/" + digest, text),
    curves: (metric, range) => askedCurves([id], metric, range),
    query: new URLSearchParams(location.search),
    stepAddress: (step) => "/run/" + id + "?step=" + encodeURIComponent(step),
    leaderboardAddress: () => "/leaderboard?run=" + id,
    compareAddress: (other) => "/compare?" + new URLSearchParams([["run", other], ["run", id]]),
    linkTo: link,
    open: go,
    pictureOf: (picture) => dataAddress("/api/picture", { digest: picture.digest }),
  });
  const follow = () => {
    if (isLive || !isRunning(view.data.run.status)) return;
    isLive = true;
    const stop = listen({ run: id }, {
      run: (all) => view.show(all),
      changes: (changes) => { view.change(changes); if (!isRunning(view.data.run.status)) { stop(); isLive = false; } },
    });
    leave = stop;
  };
  const ticking = setInterval(() => { if (!document.hidden) view.tick(); }, 1000);
  api("/api/run", { run: id }).then((all) => {
    if (!all || !isShown()) return;
    document.title = clean(all.run.pipeline) + " " + all.run.id;
    view.show(all);
    follow();
    const step = new URLSearchParams(location.search).get("step");
    if (step) view.openStep(step);
    else if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  });
  return () => { clearInterval(ticking); leave(); };
}

let leaveView = () => {}, shownAt = "", shownViews = 0;
/// Returns a test whether the view that is shown now still is: an answer that arrives after the user has left the view must not be drawn into the next one.
function shownView() {
  const mine = shownViews;
  return () => mine === shownViews;
}
const shownAddress = () => location.pathname + location.search;
function show() {
  leaveView();
  ++shownViews;
  shownAt = shownAddress();
  head.replaceChildren();
  main.replaceChildren();
  document.title = "pipe";
  const path = location.pathname;
  const top = document.getElementById("top");
  top.replaceChildren(el("span", { class: "brand" }, "pipe"), ...views.map(([to, text]) => {
    const node = link(to, text);
    if (to === path) node.setAttribute("aria-current", "page");
    return node;
  }));
  if (path.startsWith("/run/")) leaveView = runPage(decodeURIComponent(path.slice(5)));
  else if (path.startsWith("/artifact/")) leaveView = lineagePage(head, main, path.slice(10));
  else if (path === "/leaderboard") leaveView = leaderboardPage(head, main);
  else if (path === "/compare") leaveView = comparePage(head, main);
  else if (path === "/answer") leaveView = questionPage(head, main);
  else if (path === "/machine") leaveView = machinePage(head, main);
  else leaveView = runsView(head, main);
}
// A link to a section is followed by the browser itself, without another drawing; a view may have put its choices in the address meanwhile.
document.addEventListener("click", () => { shownAt = shownAddress(); }, true);
addEventListener("popstate", () => { if (shownAddress() !== shownAt) show(); });
show();
