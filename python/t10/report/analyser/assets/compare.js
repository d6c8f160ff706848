// Two runs side by side: a row per operator, what changed.
"use strict";

(() => {
  const data = JSON.parse(byId("data").textContent);
  const signed = (n) => (n > 0 ? "+" : "") + Model.count(n);
  const text = (side, name) => (row) => (row[side] ? Model.count(row[side][name]) : "absent");
  const value = (side, name) => (row) => (row[side] ? row[side][name] : -1);
  const columns = [
    { title: "operator", value: (row) => row.name },
    { title: "cycles A", value: value("a", "cycles"), text: text("a", "cycles") },
    { title: "cycles B", value: value("b", "cycles"), text: text("b", "cycles") },
    { title: "change", value: (row) => row.change, text: (row) => signed(row.change) },
    { title: "bytes/core A", value: value("a", "bytes"), text: text("a", "bytes") },
    { title: "bytes/core B", value: value("b", "bytes"), text: text("b", "bytes") },
    { title: "cores A", value: value("a", "cores"), text: text("a", "cores") },
    { title: "cores B", value: value("b", "cores"), text: text("b", "cores") },
    { title: "what changed", value: (row) => row.what },
  ];
  const mark = sortedTable(byId("operators"), columns, data.rows, (i) => mark(i));
})();
