// The run on a time axis: operators, phases and what is moved; below it the memory of a core. Both zoom together.
"use strict";

/** Least width of a step, on average, for steps to be drawn one by one. */
const STEP_PIXELS = 2;

/** Draw both charts into the page, and redraw them on change. */
function drawTime(data) {
  const us = 1e6 / data.chip.hertz;
  const begins = Model.begins(data.operators).map((cycle) => cycle * us);
  const end = begins[begins.length - 1] || 1;
  const kinds = [...new Set(data.operators.map((each) => each.kind))];
  const steppedPrograms = new Map();
  const hidden = new Set();
  const names = Object.keys(data.purposes);
  const total = (moment) => Model.sum(names.map((name) => data.purposes[name][moment] || 0));
  const stretches = Model.stretches(data.operators, begins.map((t) => t / us), total).map(([a, b, m]) => [a * us, b * us, m]);
  const readout = byId("time-readout");

  /** Return the steps of an operator, [kind, cycles, bytes], where they are wide enough, else its sums by kind. */
  function drawn(i, x) {
    const each = data.operators[i];
    const program = data.programs[each.program];
    const width = (x(begins[i + 1]) - x(begins[i])) / devicePixelRatio;
    if (!program || width < STEP_PIXELS * Model.stepCount(program)) return each.cycles.map((cycles, k) => [k, cycles, each.bytes[k]]);
    if (!steppedPrograms.has(program)) steppedPrograms.set(program, Model.steps(program));
    return steppedPrograms.get(program);
  }

  function lanes(ctx, u, x, y) {
    const select = Selection.operator;
    operatorLane(ctx, u, x, y, data.operators, begins, kinds, select, 2);
    const seen = data.operators.map((_, i) => i).filter((i) => x(begins[i + 1]) >= u.bbox.left && x(begins[i]) <= u.bbox.left + u.bbox.width);
    const parts = seen.map((i) => [i, drawn(i, x)]);
    const most = Math.max(1, ...parts.flatMap(([, steps]) => steps.map((step) => step[2])));
    for (const [i, steps] of parts) {
      let cycle = begins[i];
      for (const [kind, cycles, bytes] of steps) {
        const [from, to] = [x(cycle), x(cycle + cycles * us)];
        cycle += cycles * us;
        if (!cycles || to < u.bbox.left || from > u.bbox.left + u.bbox.width) continue;
        ctx.fillStyle = COLOURS[data.kinds[kind] || "compute"];
        const gap = steps.length > data.kinds.length && to - from > 3 ? 1 : 0;
        ctx.fillRect(from, y(1.92), Math.max(to - from - gap, 0.5), y(1.08) - y(1.92));
        const share = (0.85 * bytes) / most;
        if (bytes) ctx.fillRect(from, y(0.05 + share), Math.max(to - from - gap, 1), y(0.05) - y(0.05 + share));
      }
    }
    ctx.strokeStyle = RED;
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.strokeRect(x(begins[select]), y(2.97), Math.max(x(begins[select + 1]) - x(begins[select]), 2), y(0.02) - y(2.97));
  }

  function top() {
    const shown = names.filter((name) => !hidden.has(name));
    let most = 0;
    if (byId("memory-form").value === "address") {
      for (const [, purpose, at, size] of data.buffers) if (!hidden.has(purpose)) most = Math.max(most, at + size);
    } else for (const [, , m] of stretches) most = Math.max(most, Model.sum(shown.map((name) => data.purposes[name][m])));
    return Model.memoryScale(most, data.capacity);
  }

  function memory(ctx, u, x, y) {
    if (byId("memory-form").value === "address") addresses(ctx, x, y);
    else {
      for (const [from, to, m] of stretches) {
        let below = 0;
        for (const name of names) {
          const bytes = hidden.has(name) ? 0 : data.purposes[name][m];
          if (!bytes) continue;
          ctx.fillStyle = COLOURS[name];
          ctx.fillRect(x(from), y(below + bytes), Math.max(x(to) - x(from), 0.5) + 0.5, y(below) - y(below + bytes));
          below += bytes;
        }
      }
    }
    ctx.strokeStyle = RED;
    ctx.lineWidth = 1.5 * devicePixelRatio;
    ctx.strokeRect(u.bbox.left - 5, y(data.capacity), u.bbox.width + 10, 0);
  }

  function addresses(ctx, x, y) {
    for (const [, purpose, at, size, first, last] of data.buffers) {
      if (hidden.has(purpose)) continue;
      const from = x(momentBegin(Math.max(first, 0)));
      const to = x(momentEnd(Math.min(last, 3 * data.operators.length - 1)));
      ctx.fillStyle = COLOURS[purpose];
      ctx.fillRect(from, y(at + size), Math.max(to - from, 0.5), Math.max(y(at) - y(at + size) - 0.5, 0.5));
    }
    const reserved = data.purposes["code and stacks"][0];
    ctx.fillStyle = COLOURS["code and stacks"];
    if (!hidden.has("code and stacks")) ctx.fillRect(x(0), y(reserved), x(end) - x(0), y(0) - y(reserved));
  }

  const arrives = (i) => begins[i] + Model.arriving(data.operators[i]) * us;
  const momentBegin = (m) => (m % 3 ? arrives(Math.floor(m / 3)) : begins[m / 3]);
  const momentEnd = (m) => (m % 3 ? begins[Math.floor(m / 3) + 1] : arrives(m / 3));

  function say(time) {
    const i = Model.operatorAt(begins, time);
    const each = data.operators[i];
    const phase = what(i, time);
    const stretch = stretches.find(([from, to]) => time >= from && time < to);
    const parts = stretch ? names.map((name) => [name, data.purposes[name][stretch[2]]]).filter((part) => part[1]) : [];
    const held = parts.map(([name, bytes]) => `${name} ${Model.bytesText(bytes)}`).join(", ");
    readout.textContent = `${Model.timeText(time)}: ${each.name}, ${phase}. A core holds ${stretch ? Model.bytesText(total(stretch[2])) : "?"}: ${held}.`;
  }

  /** Return what an operator does at a time: its step where steps are drawn, else the kind of work. */
  function what(i, time) {
    const steps = drawn(i, (t) => charts[0].valToPos(t, "x", true));
    if (steps.length && steps === steppedPrograms.get(data.programs[data.operators[i].program])) {
      const n = Model.stepAt(steps, (time - begins[i]) / us);
      const [kind, cycles, bytes] = steps[n];
      return `step ${n + 1} of ${steps.length}: ${data.stepNames[kind]}, ${Model.count(cycles)} cycles${bytes ? `, ${Model.bytesText(bytes)} into the busiest core` : ""}`;
    }
    return Model.phaseAt(data, begins, time);
  }

  function largest(number) {
    const here = data.buffers.filter(([, , , , first, last]) => first <= 3 * number + 1 && last >= 3 * number + 1);
    here.sort((a, b) => b[3] - a[3]);
    byId("largest").replaceChildren(...here.slice(0, 12).map(([name, purpose, , size]) =>
      make("li", {}, make("i", { style: `background:${COLOURS[purpose]}` }), ` ${name}: ${Model.bytesText(size)} (${purpose})`)),
      ...(here.length > 12 ? [make("li", {}, `${here.length - 12} more`)] : []));
  }

  function draw() {
    charts.splice(0).forEach((each) => each.destroy());
    byId("capacity-note").textContent = Model.capacityText(top(), data.capacity);
    const click = (time) => Selection.select(Model.operatorAt(begins, time));
    const lane = ["bytes in", "phases", "operators"];
    const wide = innerWidth < 600 ? 62 : 78;
    charts.push(timeChart(byId("timeline"), 230, end, [0, 3],
      { splits: () => [0.5, 1.5, 2.5], values: () => lane, size: wide }, lanes, say, click));
    charts.push(timeChart(byId("memory"), 280, end, () => [0, top()],
      { values: (u, splits) => splits.map(Model.bytesText), incrs: POWERS, size: wide }, memory, say, click));
  }

  byId("memory-purposes").replaceChildren(...names.map((name) => {
    const box = make("input", { type: "checkbox", checked: "", onchange: () => {
      if (box.checked) hidden.delete(name);
      else hidden.add(name);
      const { min, max } = charts[0].scales.x;
      draw();
      showTime(min, max);
    } });
    return make("label", {}, box, make("i", { style: `background:${COLOURS[name]}` }), ` ${name}`);
  }));
  byId("memory-form").addEventListener("change", () => draw());
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-all").addEventListener("click", () => showTime(0, end));
  byId("zoom-operator").addEventListener("click", () => {
    const [from, to] = [begins[Selection.operator], begins[Selection.operator + 1]];
    showTime(from - (to - from) / 2, to + (to - from) / 2);
  });
  legend("operator-kinds", "operators:", kinds, (_, i) => OPERATOR_COLOURS[i % OPERATOR_COLOURS.length]);
  legend("kinds", "phases:", data.kinds, (kind) => COLOURS[kind]);
  Selection.listeners.push((number) => { charts.forEach((each) => each.redraw(false)); largest(number); });
  redrawn.push(draw);
  draw();
}
