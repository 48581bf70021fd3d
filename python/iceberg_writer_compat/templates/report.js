
"use strict";

const order = new Intl.Collator("en", { numeric: true }).compare;
const key = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.key ?? cell.textContent.trim();
};

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    rows.sort(([a], [b]) => (up ? order(a, b) : order(b, a)));
    body.append(...rows.map(([, row]) => row));
  }));
}

for (const list of document.querySelectorAll(".findings")) {
  const rows = [...list.querySelectorAll("tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
  const boxes = [...list.querySelectorAll(".tools input[type=checkbox]")];
  const search = list.querySelector("input[type=search]");
  const filter = () => {
    const chosen = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !(chosen.has(row.dataset.severity) && text.includes(wanted));
      shown += row.hidden ? 0 : 1;
    }
    list.querySelector("output").textContent = `${shown} of ${rows.length} shown`;
  };
  list.querySelector(".tools").hidden = false;
  [...boxes, search].forEach((input) => input.addEventListener("input", filter));
  filter();
}

for (const tree of document.querySelectorAll(".columns")) {
  const rows = [...tree.querySelectorAll("tbody tr")];
  const box = tree.querySelector("input");
  tree.querySelector(".tools").hidden = !rows.some((row) => "marked" in row.dataset);
  const filter = () => rows.forEach((row) => { row.hidden = box.checked && !("marked" in row.dataset); });
  box.addEventListener("input", filter);
  // A browser may remember the state of a box when a page is loaded again.
  filter();
}
