// Texts and elements. All texts become text nodes; nothing is parsed as HTML.
const words = { cached: "reused" };
const word = (status) => words[status] || status;
// Shows characters that are invisible, or change the order of letters, by their numbers.
const clean = (text) => String(text)
  .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
    (c) => "\u27e8" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0") + "\u27e9");
const time = (ms) => {
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(1) + " s";
  const s = Math.round(ms / 1000), pad = (n) => String(n).padStart(2, "0");
  return s < 3600 ? Math.floor(s / 60) + " m " + pad(s % 60) + " s" : Math.floor(s / 3600) + " h " + pad(Math.floor(s % 3600 / 60)) + " m";
};
const bytes = (n) => {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (n >= (unit ? 1023.95 : 1024) && unit < units.length - 1) { n /= 1024; ++unit; }
  return n.toFixed(1).replace(".0", "") + " " + units[unit]; // as the terminal has it
};
const figure = (value) => typeof value === "number" ? String(+value.toPrecision(6)) : clean(value);
const date = (ms) => ms ? new Date(ms).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "";
// With commas between thousands; toLocaleString() would take 30 ms to begin with.
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const count = (n, noun) => grouped(n) + " " + noun + (n === 1 ? "" : "s");
/// Returns a text that has room in a sentence: of a longer text, the beginning and the length.
const shortened = (text, most = 200) => text.length <= most ? text : text.slice(0, most) + "\u2026 (" + grouped(text.length) + " characters)";
const pairs = (values) => Object.entries(values || {}).map(([key, value]) => key + " = " + shortened(JSON.stringify(value))).join(", ");

const fill = (node, attributes, children) => {
  for (const [key, value] of Object.entries(attributes || {})) if (value !== undefined && value !== null) node.setAttribute(key, value);
  for (const child of children) if (child !== null && child !== undefined && child !== "")
    node.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  return node;
};
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
const name = (text) => el("bdi", {}, text);
// A name whose line may break after one of its marks (`.`, `_`, `:`, `/`, `=`, `-`), but not within a word.
const breakingName = (text) => el("bdi", { class: "breaks" }, ...clean(text).split(/(?<=[._:/=-])/).flatMap((part, i) => i ? [el("wbr", {}), part] : [part]));
const badge = (status) => el("span", { class: "badge s-" + status }, word(status));
// Returns the width of a drawing in the page, at least `least`: in a narrower page the drawing is scrolled.
const drawingWidth = (node, least = 560) => Math.max(least, (node.closest("main") || document.body).clientWidth - 2);
const scroller = (label, ...children) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);
const factList = () => {
  const list = el("dl", { class: "facts" });
  return { list, add: (title, value) => { if (value) list.append(el("dt", {}, title), el("dd", {}, value instanceof Node ? value : name(value))); } };
};
/// Keeps a choice in the address of the page; without a value, it is removed.
function remembered(key, value) {
  const words = new URLSearchParams(location.search);
  if (value) words.set(key, value); else words.delete(key);
  try { history.replaceState(null, "", location.pathname + (words.size ? "?" + words : "") + location.hash); } catch (error) { /* a frame in another page has no address of its own */ }
}
