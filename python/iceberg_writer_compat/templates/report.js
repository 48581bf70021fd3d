
"use strict";

const order = new Intl.Collator("en", { numeric: true }).compare;

// Rows, or what stands for them, can be in several containers, of which all but the first are
// behind a line to click. Each container keeps the number of rows that it has.
const sortable = (heads, rows, key) => {
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const before = rows();
    const places = before.map((row) => row.parentNode);
    const sorted = before.map((row) => [key(row, column), row]);
    sorted.sort(([a], [b]) => (up ? order(a, b) : order(b, a)));
    sorted.forEach(([, row], index) => places[index].append(row));
  }));
};

for (const list of document.querySelectorAll(".sortable")) {
  const heads = [...list.querySelectorAll("th:has(button)")];
  sortable(heads, () => [...list.querySelectorAll("tbody tr")], (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.key ?? cell.textContent.trim();
  });
}

for (const list of document.querySelectorAll(".tables")) {
  const heads = [...list.querySelectorAll(".sorts > span")];
  const tables = () => [...list.querySelectorAll(".table")];
  sortable(heads, tables, (table, column) => table.dataset[heads[column].dataset.key]);
  list.querySelector(".sorts").hidden = false;
}

// What is searched is shown, also where it is behind a line to click; that is closed again later.
const reveal = (parts, isWanted) => {
  for (const part of parts) {
    if (isWanted && !part.open) {
      part.open = true;
      part.dataset.revealed = "";
    } else if (!isWanted && "revealed" in part.dataset) {
      part.open = false;
      delete part.dataset.revealed;
    }
  }
};

for (const list of document.querySelectorAll(".findings, .tables")) {
  const ofTables = list.classList.contains("tables");
  const rows = [...list.querySelectorAll(ofTables ? ".table" : "tbody tr")];
  const groups = ofTables ? [] : [...list.querySelectorAll(".group")];
  const kind = (row) => row.dataset.state ?? row.closest("[data-severity]").dataset.severity;
  const text = (node) => (node ? node.textContent.toLowerCase() : "");
  const entries = rows.map((row) => [row, kind(row), text(row.closest(".group")?.querySelector("summary")) + text(row)]);
  const tools = list.querySelector(".tools");
  const boxes = [...tools.querySelectorAll("input[type=checkbox]")];
  const search = tools.querySelector("input[type=search]");
  const filter = () => {
    const chosen = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const [row, of, content] of entries) {
      row.hidden = !(chosen.has(of) && content.includes(wanted));
      shown += row.hidden ? 0 : 1;
    }
    const isCut = wanted !== "" || boxes.some((box) => !box.checked);
    groups.forEach((group) => { group.hidden = !group.querySelector("tbody tr:not([hidden])"); });
    reveal(groups.filter((group) => !group.hidden), wanted !== "");
    const cuts = [...list.querySelectorAll(".more")].filter((more) => rows.some((row) => more.contains(row)));
    reveal(cuts, isCut);
    tools.querySelector("output").textContent = `${shown} of ${rows.length} shown`;
  };
  [tools, ...boxes, search].forEach((part) => { part.hidden = false; });
  [...boxes, search].forEach((input) => input.addEventListener("input", filter));
  filter();
}

for (const tree of document.querySelectorAll(".columns")) {
  const rows = [...tree.querySelectorAll("tbody tr")];
  const box = tree.querySelector("input");
  tree.querySelector(".tools").hidden = !rows.some((row) => "marked" in row.dataset);
  const filter = () => {
    rows.forEach((row) => { row.hidden = box.checked && !("marked" in row.dataset); });
    reveal(tree.querySelectorAll(".more"), box.checked);
  };
  box.addEventListener("input", filter);
  // A browser may remember the state of a box when a page is loaded again.
  filter();
}

// A link to a table opens it, and what it is in.
const target = () => {
  let part = location.hash && document.getElementById(location.hash.slice(1));
  for (; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
};
addEventListener("hashchange", target);
target();
