// A log with its colours, in one piece or while it grows (no library: src/report/README.md).
// `leavesOut(line)` is true for a line that is not shown. If `belongs` is set, only whole lines for which it is true are shown.
function logWriter(box, leavesOut = () => false, belongs = null) {
  // Sequences of a terminal: colours count, all others are left out. One that is cut at the end waits for its rest.
  const sequence = /\u001b(?:\[([0-9;]*)([ -/]*[@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[PX^_][^\u001b]*(?:\u001b\\)?|[ -/]*[0-~])/g;
  const longestLine = 65536;
  let style = [], unfinished = "", styleBefore = [], shown = null;

  const colour = (codes) => {
    const drop = (test) => { style = style.filter((one) => !test(one)); };
    for (let i = 0; i < codes.length; ++i) {
      const code = codes[i];
      if (code === 0) style = [];
      else if (code === 1) style.push("bold");
      else if (code === 3) style.push("italic");
      else if (code === 4) style.push("under");
      else if (code === 22) drop((one) => one === "bold");
      else if (code === 39) drop((one) => /^c\d$/.test(one));
      else if (code === 38 || code === 48) i += codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0;
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) { drop((one) => /^c\d$/.test(one)); style.push("c" + code % 10); }
    }
  };
  const render = (text, into) => {
    const put = (part) => {
      if (!part) return;
      const lines = part.split("\n").filter((line) => !leavesOut(line)).map((line) => { // what a carriage return has overwritten is gone
        const kept = line.replace(/\r+$/, "");
        return clean(shownLine(kept.slice(kept.lastIndexOf("\r") + 1)));
      }).join("\n");
      if (!style.length) { into.append(document.createTextNode(lines)); return; }
      const span = document.createElement("span");
      span.className = style.join(" ");
      span.textContent = lines;
      into.append(span);
    };
    let at = 0;
    for (const match of text.matchAll(sequence)) {
      put(text.slice(at, match.index));
      at = match.index + match[0].length;
      if (match[2] === "m") colour((match[1] || "0").split(";").map(Number));
    }
    put(text.slice(at));
  };
  const own = (text) => belongs ? text.split("\n").filter((line) => !line || belongs(line)).join("\n") : text;
  return {
    /// Appends text, whose last line may go on in the next call. Returns the node of the whole lines.
    put(text) {
      if (shown) shown.remove();
      style = styleBefore;
      const all = unfinished + text, end = all.length - (all.lastIndexOf("\n") + 1) > longestLine ? all.length : all.lastIndexOf("\n") + 1;
      const whole = document.createElement("span");
      render(own(all.slice(0, end)), whole);
      box.append(whole);
      unfinished = all.slice(end);
      styleBefore = style;
      shown = document.createElement("span");
      render(own(unfinished), shown);
      box.append(shown);
      return whole;
    },
  };
}

// Returns the test for lines that the rank of a step with nodes has printed.
const linesOfRank = (rank) => (line) => line.startsWith("[" + rank + "] ");
const logName = (step, number, what) => "Log of " + (what ? what + ": " : "") + step + ", attempt " + number;
const logBox = (title) => el("pre", { class: "log", tabindex: "0", role: "region", "aria-label": clean(title) });

/// Returns the box of a log that does not grow. @param leftOut bytes before the text
function wholeLog(title, text, leftOut, leavesOut, belongs) {
  const box = logBox(title);
  if (leftOut) box.append(el("span", { class: "dim" }, "\u2026 " + bytes(leftOut) + " before this\n"));
  logWriter(box, leavesOut, belongs).put(text);
  requestAnimationFrame(() => { box.scrollTop = box.scrollHeight; }); // its end says what happened
  return box;
}

// Returns a line without the mark of the rank that has printed it, and the mark; only for lines that begin with `@pipe`.
const withoutRank = (line) => { const rank = /^\[\d+\] (?=@pipe \{)/.exec(line); return rank ? [line.slice(rank[0].length), rank[0]] : [line, ""]; };

/// Returns true for a line that only reports a metric or progress: among the last lines before a failure, such lines would hide its reason.
function isOnlyMetric(whole) {
  const [line] = withoutRank(whole);
  if (!line.startsWith("@pipe {")) return false;
  try { const found = JSON.parse(line.slice(6)); return ("metric" in found || "progress" in found) && !("message" in found); } catch (error) { return false; }
}

/// Returns a line `@pipe {...}` as the terminal shows it, such as `loss = 0.25`; other lines unchanged.
function shownLine(whole) {
  const [line, rank] = withoutRank(whole);
  if (!line.startsWith("@pipe {")) return whole;
  let found = null;
  try { found = JSON.parse(line.slice(6)); } catch (error) { return whole; }
  const text = (value) => typeof value === "string" ? value : JSON.stringify(value), has = (key) => Object.hasOwn(found, key);
  if (has("metric") && (typeof found.metric !== "string" || !has("value"))) return whole;
  const parts = [];
  if (typeof found.progress === "number") parts.push(Math.round(found.progress * 100) + " %");
  if (has("metric")) parts.push(found.metric + " = " + text(found.value));
  if (has("level")) parts.push(text(found.level) + ":");
  if (has("message")) parts.push(text(found.message));
  if (found.fields && typeof found.fields === "object") for (const [key, value] of Object.entries(found.fields)) parts.push(key + "=" + text(value));
  return parts.length ? rank + parts.join(" ") : whole;
}
