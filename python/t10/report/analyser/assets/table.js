// A table that is sorted by a click on a heading and searched by a word.
"use strict";

/**
 * Fill `into` with a table. A column is {title, value(row), text(row), note, link(row)}; numbers are sorted downwards first.
 * `onSelect(row number)` is called on a click. Returns a function that marks a row.
 */
function sortedTable(into, columns, rows, onSelect, sortBy = -1) {
  let order = rows.map((_, i) => i);
  let by = sortBy;
  let upwards = false;
  let chosen = -1;
  let word = "";
  const body = make("tbody");
  const count = make("span", { class: "note", role: "status" });
  const search = make("input", {
    type: "search", placeholder: "search: name, kind, ...", "aria-label": "search operators",
    oninput: () => { word = search.value.toLowerCase(); fill(); },
  });
  const heads = columns.map((column, i) =>
    make("th", { scope: "col", title: column.note || "" },
      make("button", { onclick: () => { upwards = by === i ? !upwards : !isNumber(i); by = i; fill(); } }, column.title)),
  );
  const isNumber = (i) => rows.length > 0 && typeof columns[i].value(rows[0]) === "number";
  const lines = rows.map((row, i) => {
    const line = make("tr", { tabindex: 0, onclick: () => onSelect(i), onkeydown: (e) => { if (e.key === "Enter") onSelect(i); } },
      ...columns.map((column) => make("td", { class: Model.cellClass(column.value(row)) },
        column.link ? make("a", { href: column.link(row) }, column.value(row)) : column.text ? column.text(row) : String(column.value(row)))));
    return line;
  });
  const texts = lines.map((line) => line.textContent.toLowerCase());

  function fill() {
    order = rows.map((_, i) => i).filter((i) => texts[i].includes(word));
    if (by >= 0) {
      const value = columns[by].value;
      const sign = upwards ? 1 : -1;
      order.sort((a, b) => {
        const [x, y] = [value(rows[a]), value(rows[b])];
        return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y))) || a - b;
      });
    }
    body.replaceChildren(...order.map((i) => lines[i]));
    count.textContent = order.length === rows.length ? `${rows.length} rows` : `${order.length} of ${rows.length} rows`;
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== by ? "none" : upwards ? "ascending" : "descending"));
  }

  fill();
  into.replaceChildren(make("p", { class: "bar" }, search, count),
    make("div", { class: "wide tall" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body)));
  return (number) => {
    if (chosen >= 0) lines[chosen].classList.remove("chosen");
    chosen = number;
    if (chosen >= 0) lines[chosen].classList.add("chosen");
  };
}
