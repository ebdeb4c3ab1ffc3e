// Executed notebooks: their code, texts and pictures. HTML in their outputs is left out.
const drawNotebooks = (data, into) => {
  const notebooks = data.pictures.filter((one) => one.cells);
  if (!notebooks.length) return false;
  for (const one of notebooks) {
    const node = el("details", { class: "notebook" }, el("summary", {}, name(one.name)));
    for (const cell of one.cells) {
      node.append(el("pre", { class: cell.k === "code" ? "log cell" : "log" }, cell.s));
      for (const output of cell.o || [])
        node.append(output.p ? el("img", { class: "picture", src: "data:image/png;base64," + output.p, alt: "Output of a cell", loading: "lazy" }) : el("pre", { class: "log" }, output.t));
    }
    node.open = notebooks.length === 1;
    into.append(node);
  }
  return true;
};
