// Executed notebooks: their code, texts, pictures and HTML.
// HTML has a frame of its own: its sandbox runs no script and has another origin, and the page's policy, which holds in it, too, refuses requests and styles.
const htmlFrame = (html) => el("iframe", { class: "html", sandbox: "", title: "HTML that a cell displays", loading: "lazy", height: Math.min(480, 48 + 24 * (html.split(/<tr|<p|<br|<li|<h\d|<div/i).length - 1)),
  srcdoc: '<!doctype html><html lang="en"><meta name="color-scheme" content="light dark"><meta http-equiv="x-dns-prefetch-control" content="off"><font face="sans-serif" size="2">' + html });
const outputNode = (output) => output.p ? el("img", { class: "picture", src: "data:image/png;base64," + output.p, alt: "Output of a cell", loading: "lazy" })
  : output.h ? htmlFrame(output.h) : el("pre", { class: "log" }, output.t);
const drawNotebooks = (data, into) => {
  const notebooks = data.pictures.filter((one) => one.cells);
  if (!notebooks.length) return false;
  for (const one of notebooks) {
    const node = el("details", { class: "notebook" }, el("summary", {}, name(one.name)));
    for (const cell of one.cells) {
      node.append(el("pre", { class: cell.k === "code" ? "log cell" : "log" }, cell.s));
      for (const output of cell.o || []) node.append(outputNode(output));
    }
    node.open = notebooks.length === 1;
    into.append(node);
  }
  return true;
};
