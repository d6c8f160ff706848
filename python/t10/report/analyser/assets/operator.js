// The selected operator: its numbers, its Pareto front, its rotation stepped through.
"use strict";

/** Draw time against memory of an operator: the front as steps, other plans, and the plan that runs. */
function drawFront(data, into, record) {
  into.replaceChildren();
  const points = [...record.front, ...record.others, record.chosen];
  const xs = [...new Set(points.map((point) => point[0]))].sort((a, b) => a - b);
  const row = (list) => xs.map((x) => { const at = list.find((point) => point[0] === x); return at ? at[1] : null; });
  const [front, others, chosen] = [row(record.front), row(record.others), row([record.chosen])];
  const most = Math.max(...points.map((point) => point[1]));
  const least = Math.min(...points.map((point) => point[1]));
  const axis = { stroke: css("--text"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") } };
  const dots = (size) => ({ show: true, size, space: 0 });
  const spread = (low, high) => [Math.max(0, low - (high - low || low) * 0.08), high + (high - low || high) * 0.08];
  new uPlot({
    width: into.clientWidth, height: 260, legend: { show: false }, cursor: { drag: { x: true, y: true } },
    scales: { x: { time: false, range: (_, a, b) => spread(a, b) }, y: { distr: most > 20 * least ? 3 : 1, range: most > 20 * least ? undefined : (_, a, b) => spread(a, b) } },
    axes: [{ ...axis, values: (u, v) => v.map(Model.bytesText), incrs: POWERS, space: 80, label: "bytes per core while it runs", labelSize: 20 },
      { ...axis, values: (u, v) => v.map((n) => (n === null ? "" : Model.count(n))), size: 74, label: "modelled cycles, alone", labelSize: 20 }],
    series: [{},
      { stroke: "#4a6fd0", width: 1, paths: uPlot.paths.stepped({ align: 1 }), points: { ...dots(6), fill: "#4a6fd0" }, spanGaps: true },
      { stroke: css("--faint"), paths: () => null, points: { ...dots(5), fill: css("--faint") } },
      { stroke: RED, paths: () => null, points: { ...dots(13), width: 3, fill: "transparent" } }],
  }, [xs, front, others, chosen], into);
}

function drawOperator(data) {
  const begins = Model.begins(data.operators);
  const us = 1e6 / data.chip.hertz;
  const state = { step: 0, core: 0, slot: 0, timer: 0 };
  const plan = () => data.classes[data.operators[Selection.operator].class].rotation;
  const hue = (piece, n) => `hsl(${Math.round((360 * piece) / Math.max(n, 1) + 200) % 360} 55% 50%)`;

  function numbers(number) {
    const each = data.operators[number];
    const cycles = Model.sum(each.cycles);
    const bytes = Model.sum(each.bytes);
    const facts = [
      ["kind", each.kind], ["begins", Model.timeText(begins[number] * us)], ["takes", `${Model.timeText(cycles * us)}, ${Model.count(cycles)} cycles`],
      ["computing", `${((100 * Model.computing(each)) / Math.max(cycles, 1)).toFixed(0)} %`],
      ["cores", `${Model.count(each.cores)} of ${Model.count(data.chip.cores)}`], ["steps", Model.count(each.steps)],
      ["memory while it runs", Model.bytesText(each.peak)], ...(each.energy ? [["energy", each.energy]] : []),
      ["busiest core receives", Model.bytesText(bytes)], ["mean GB/s in", Model.meanRate(bytes, cycles, data.chip.hertz).toFixed(2)],
      ...(each.utilisation === null ? [] : [["utilisation", `${(100 * each.utilisation).toFixed(1)} %`]]),
    ];
    byId("operator-name").textContent = each.name + (each.at && each.at !== each.name ? ` (${each.at})` : "");
    byId("operator-facts").replaceChildren(...facts.map(([name, value]) => make("div", {}, name, make("b", {}, value))));
    byId("operator-moves").replaceChildren(...each.moved.map(([name, kind, source, n, spent]) => make("li", {},
      kind === "in_place" ? `${name} from ${source}: already where it is needed`
        : `${name} from ${source}: ${kind}, ${Model.bytesText(n)} to the busiest core, ${Model.count(spent)} cycles`)));
    const record = data.classes[each.class].front;
    const where = record.isOnFront ? "is on the front" : "is not on the front: it was chosen together with data movement and buffer addresses";
    byId("front-note").textContent = `${Model.things(record.front.length, "plan")} on the Pareto front of cycles and bytes per core (blue steps)` +
      (record.others.length ? `, ${Model.things(record.others.length, "plan")} that the front beats (grey)` : "") +
      `. The chosen plan (red ring) ${where}. Cycles as the search prices them: alone, fetching estimated.`;
    drawFront(data, byId("front"), record);
  }

  /** Draw one ring of a tensor: a row per core, the part of the axis that it holds coloured, its sub-task outlined. */
  function ringPicture(slot) {
    const p = plan();
    const axis = Model.rotationAxis(p, slot);
    const positions = Model.positions(p, state.step);
    const ring = Model.ring(p, slot, state.core);
    const shown = ring.slice(0, 16);
    const [length, n] = [p.lengths[axis], p.tensors[slot].ft[axis]];
    const [window, high, left, width] = [length / n, 18, 66, 420];
    const scale = (width - left - 4) / length;
    const svg = make("svg", { viewBox: `0 0 ${width} ${shown.length * high + 4}`, role: "img",
      "aria-label": `ring of core ${state.core} at step ${state.step + 1}` });
    shown.forEach((core, row) => {
      const where = Model.coordinates(p, core);
      const start = Model.starts(p, slot, where, positions)[axis];
      const y = row * high + 2;
      svg.append(make("text", { x: 0, y: y + 12, class: core === state.core ? "me" : "" }, `core ${core}`));
      svg.append(make("rect", { x: left, y, width: length * scale, height: high - 4, class: "empty" }));
      for (let from = start; from < start + window - 1e-9;) {
        const piece = Math.floor((from % length) / window);
        const to = Math.min(start + window, Math.floor(from / window + 1 + 1e-9) * window);
        svg.append(make("rect", { x: left + (from % length) * scale, y, width: (to - from) * scale, height: high - 4, fill: hue(piece, n) }));
        from = to;
      }
      svg.append(make("rect", { x: left + start * scale, y: y - 1, width: Math.min(p.rp[axis], length - start) * scale, height: high - 2, class: "box" }));
    });
    const tensor = data.operators[Selection.operator].tensors[slot];
    const more = ring.length > shown.length ? ` (16 of its ${ring.length} cores shown)` : "";
    return make("figure", {}, make("figcaption", {}, make("b", {}, tensor),
      `: ring of ${ring.length} cores${more} along ${p.axes[axis]}, ${Model.count(length)} indices, ${Model.count(window)} on each core; ` +
      `every shift passes ${Model.count(p.rp[axis])} of them (${Model.bytesText(Model.shiftBytes(p, slot, axis))}) to the core below`), svg);
  }

  /** Draw the chip: which piece of a tensor every core holds. */
  function chipPicture() {
    const p = plan();
    const slot = state.slot;
    const axis = Model.rotationAxis(p, slot);
    const positions = Model.positions(p, state.step);
    const ring = new Set(Model.ring(p, slot, state.core));
    const window = p.lengths[axis] / p.tensors[slot].ft[axis];
    grid(byId("rotation-chip"), data.chip, (core) => {
      if (core >= Model.cores(p)) return css("--empty");
      const start = Model.starts(p, slot, Model.coordinates(p, core), positions)[axis];
      return hue(start / window, p.tensors[slot].ft[axis]);
    }, (core) => ring.has(core), (core) => { if (core < Model.cores(p)) { state.core = core; rotation(); } });
  }

  function rotation() {
    const p = plan();
    const slots = Model.rotating(p);
    const none = !slots.length;
    for (const part of document.querySelectorAll(".rotates")) part.hidden = none;
    byId("rotation-none").hidden = !none;
    if (none) return;
    if (!slots.includes(state.slot)) state.slot = slots[0];
    const n = Model.nSteps(p);
    const [before, after] = [Model.positions(p, state.step), Model.positions(p, Math.min(state.step + 1, n - 1))];
    const moving = p.axes.map((_, a) => a).filter((a) => before[a] !== after[a]);
    const box = p.axes.map((name, a) => `${name} ${Model.count(p.steps[a] > 1 ? p.rp[a] : p.lengths[a])}`).join(", ");
    const tensors = data.operators[Selection.operator].tensors;
    const passes = slots.filter((slot) => moving.some((a) => p.tensors[slot].ft[a] > 1)).map((slot) => tensors[slot]);
    const move = passes.length > 1 ? "move" : "moves";
    byId("rotation-step").max = n - 1;
    byId("rotation-step").value = state.step;
    byId("rotation-says").textContent = `Step ${state.step + 1} of ${n}: every core computes ${box}` +
      (state.step + 1 < n ? `; then ${passes.join(" and ") || "nothing"} ${move} on along ${moving.map((a) => p.axes[a]).join(", ")}.`
        : p.reduce === "none" ? "; the result is complete." : "; then partial results are combined.");
    const pick = byId("rotation-tensor");
    pick.replaceChildren(...slots.map((slot) => make("option", slot === state.slot ? { value: slot, selected: "" } : { value: slot }, tensors[slot])));
    byId("rings").replaceChildren(...slots.map(ringPicture));
    chipPicture();
  }

  const step = (by) => { const n = Model.nSteps(plan()); state.step = (state.step + by + n) % n; rotation(); };
  function play() {
    clearInterval(state.timer);
    const isOn = state.timer !== 0;
    state.timer = isOn ? 0 : setInterval(() => step(1), 700);
    byId("rotation-play").textContent = isOn ? "play" : "stop";
  }
  byId("rotation-back").addEventListener("click", () => step(-1));
  byId("rotation-next").addEventListener("click", () => step(1));
  byId("rotation-play").addEventListener("click", play);
  byId("rotation-step").addEventListener("input", (e) => { state.step = +e.target.value; rotation(); });
  byId("rotation-tensor").addEventListener("change", (e) => { state.slot = +e.target.value; rotation(); });
  const show = (number) => { numbers(number); rotation(); };
  Selection.listeners.push((number) => { state.step = 0; state.core = 0; show(number); });
  redrawn.push(() => show(Selection.operator));
}
