// Where an artifact comes from, back to the sources.
function lineagePage(head, main, digest) {
  head.append(el("h1", {}, "Artifact"), el("div", { class: "dim mono" }, digest));
  const entryOf = (entry) => {
    if (entry.data && !entry.step) return el("p", {}, name(entry.data.kind + " " + entry.data.source), " ", el("span", { class: "dim" }, (entry.digest || "").slice(0, 12)));
    const box = el("div", { class: "made" }), title = el("h3", {}, name(entry.step + "." + (entry.output || "")), " ", el("span", { class: "dim" }, entry.digest.slice(0, 12) + (entry.bytes === undefined ? "" : ", " + bytes(entry.bytes))));
    box.append(title);
    if (entry.shown_before) { box.append(el("p", { class: "dim" }, "It is shown above.")); return box; }
    const { list, add } = factList();
    add("Made by", el("span", {}, "run ", link("/run/" + entry.run + "?step=" + encodeURIComponent(entry.step), entry.run), " of ", name(entry.pipeline || ""), ", attempt " + entry.attempt + ", " + entry.started));
    add("Published as", (entry.published || []).join(", "));
    add("In", entry.image);
    add("Command", entry.command && el("code", {}, entry.command));
    add("Parameters", pairs(entry.parameters));
    add("Commit", entry.git && entry.git.commit + (entry.git.dirty ? ", with changes that are not committed" : ""));
    add("Code", Object.entries(entry.code || {}).map(([file, content]) => file + " " + String(content).slice(0, 12)).join(", "));
    box.append(list);
    for (const [input, from] of Object.entries(entry.inputs || {}))
      box.append(el("div", { class: "input" }, el("span", { class: "dim" }, "Input "), name(input), ...[from].flat().map((one) => one ? entryOf(one) : el("p", { class: "dim" }, "Its source is not known here."))));
    return box;
  };
  const isShown = shownView();
  api("/api/lineage", { digest }).then((found) => {
    if (!found || !isShown()) return;
    main.append(el("h2", {}, "What made it"), found.made_by ? entryOf(found.made_by) : el("p", {}, "No step in this state folder made it."));
  });
  return () => {};
}
