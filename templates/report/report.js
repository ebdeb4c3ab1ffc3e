// A report: the data is in this file.
runView(document.getElementById("head"), document.getElementById("main"), {
  log: (step, attempt, number, what, belongs) => attempt.l ? wholeLog(logName(step.n, number, what), attempt.l, attempt.lo, what && isOnlyMetric, belongs)
    : el("div", { class: "dim" }, attempt.lo ? "The log (" + bytes(attempt.lo) + ") is left out: pipe logs has it." : "No output."),
}).show(JSON.parse(document.getElementById("data").textContent));
