// Reads the data of the page and draws everything.
"use strict";

(() => {
  const data = JSON.parse(byId("data").textContent);
  if (!data.operators.length) return;
  const total = Model.sum(data.operators.map((each) => Model.sum(each.cycles)));
  const begins = Model.begins(data.operators);
  const us = 1e6 / data.chip.hertz;
  const cycles = (each) => Model.sum(each.cycles);
  const bytes = (each) => Model.sum(each.bytes);
  const rate = (each) => Model.meanRate(bytes(each), cycles(each), data.chip.hertz);
  const index = new Map(data.operators.map((each, i) => [each, i]));
  const turns = (each) => Model.rotating(data.classes[each.class].rotation).length;
  const columns = [
    { title: "operator", value: (each) => each.name },
    { title: "kind", value: (each) => each.kind },
    { title: "begins", value: (each) => begins[index.get(each)] * us, text: (each) => Model.timeText(begins[index.get(each)] * us) },
    { title: "cycles", value: cycles, text: (each) => Model.count(cycles(each)), note: "modelled" },
    { title: "share", value: (each) => cycles(each) / total, text: (each) => `${((100 * cycles(each)) / total).toFixed(1)} %` },
    { title: "computing", value: (each) => Model.computing(each) / cycles(each) || 0, text: (each) => `${((100 * Model.computing(each)) / cycles(each) || 0).toFixed(0)} %` },
    { title: "bytes in", value: bytes, text: (each) => Model.bytesText(bytes(each)), note: "of the busiest core" },
    { title: "mean GB/s in", value: rate, text: (each) => rate(each).toFixed(2), note: "into the busiest core, over the operator's time" },
    { title: "utilisation", value: (each) => each.utilisation ?? -1, text: (each) => (each.utilisation === null ? "" : `${(100 * each.utilisation).toFixed(1)} %`), note: "part of the matrix engines' peak, over the operator's time" },
    { title: "cores", value: (each) => each.cores, text: (each) => Model.count(each.cores) },
    { title: "steps", value: (each) => each.steps, text: (each) => Model.count(each.steps) },
    { title: "rotating", value: turns, note: "tensors that rotate" },
    { title: "memory", value: (each) => each.peak, text: (each) => Model.bytesText(each.peak), note: "of a core, all that is in use" },
    { title: "plans", value: (each) => each.plans, note: "on its front" },
  ];
  const mark = sortedTable(byId("operators"), columns, data.operators, (i) => Selection.select(i));
  Selection.listeners.push(mark);
  drawTime(data);
  drawOperator(data);
  drawTiles(data);
  // The first look is at what is special: the longest operator whose tensors rotate, else the longest.
  const better = (a, b) => (turns(a) > 0) - (turns(b) > 0) || cycles(a) - cycles(b);
  Selection.select(data.operators.reduce((best, each, i) => (better(each, data.operators[best]) > 0 ? i : best), 0));
})();
