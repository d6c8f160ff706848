// A model in stages: what every group of cores does with the first results, and what each stage takes.
"use strict";

(() => {
  const data = JSON.parse(byId("data").textContent);
  const us = 1e6 / data.hertz;
  const PARTS = { receive: COLOURS.shift, run: COLOURS.compute, send: COLOURS.relayout };
  const { stages } = data;
  const n = stages.length;
  const done = Model.pipeline(stages, data.interval);
  const end = Model.sum(stages.map((each) => each.run + each.send)) * us || 1;
  const receives = (i) => (i ? stages[i - 1].send : 0);
  const takes = (i) => receives(i) + stages[i].run + stages[i].send;
  let selected = 0;

  function lanes(ctx, u, x, y) {
    const high = y(0) - y(0.84);
    for (const { stage, result, part, from, to } of done) {
      const [left, right] = [x(from * us), x(to * us)];
      if (right < u.bbox.left || left > u.bbox.left + u.bbox.width) continue;
      ctx.fillStyle = PARTS[part];
      ctx.globalAlpha = result % 2 ? 0.6 : 1;
      ctx.fillRect(left, y(n - stage - 0.08), Math.max(right - left, 0.5), high);
      ctx.globalAlpha = 1;
      if (part !== "run" || right - left < 60 || high < 12 * devicePixelRatio) continue;
      ctx.fillStyle = "#fff";
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textBaseline = "middle";
      ctx.textAlign = "left";
      ctx.fillText(`result ${result}`, left + 5, y(n - stage - 0.5));
    }
    ctx.strokeStyle = RED;
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.strokeRect(u.bbox.left + 1, y(n - selected), u.bbox.width - 2, y(0) - y(1));
  }

  function say(time) {
    const now = done.filter((each) => each.from * us <= time && time < each.to * us);
    const texts = now.map((each) => `stage ${each.stage} ${each.part === "run" ? "runs" : `${each.part}s`} result ${each.result}`);
    byId("time-readout").textContent = `${Model.timeText(time)}: ${texts.join(", ") || "nothing"}.`;
  }

  /** Draw a bar per stage out of parts [name, colour, value, text] of a whole. */
  function bars(into, whole, partsOf) {
    const [width, row] = [into.clientWidth || 420, 22];
    const wide = width - 70;
    into.replaceChildren(make("svg", { width, height: row * n, class: "bars" }, ...stages.flatMap((_, i) => {
      let left = 70;
      const parts = partsOf(i);
      return [make("text", { x: 0, y: i * row + 15 }, `stage ${i}`),
        make("rect", { x: 70, y: i * row + 3, width: wide, height: row - 6, class: "empty" }),
        ...parts.map(([name, colour, value, text]) => {
          const bar = make("rect", { x: left, y: i * row + 3, width: (wide * value) / whole, height: row - 6, fill: colour });
          left += (wide * value) / whole;
          bar.append(make("title", {}, `${name}: ${text}`));
          return bar;
        })];
    })));
  }

  function draw() {
    charts.splice(0).forEach((each) => each.destroy());
    const step = Math.ceil(n / 16);
    const rows = stages.map((_, i) => i).filter((i) => i % step === 0).reverse();
    const axis = { splits: () => rows.map((i) => n - i - 0.5), values: () => rows.map((i) => `stage ${i}`), size: 78 };
    const chart = timeChart(byId("pipeline"), Math.min(60 + 30 * n, 560), end, [0, n], axis, lanes, say, () => {
      const i = n - 1 - Math.floor(chart.posToVal(chart.cursor.top, "y"));
      if (stages[i]) select(i);
    });
    charts.push(chart);
    const cycles = (name, value) => [name, PARTS[name], value, `${Model.timeText(value * us)}, ${Model.count(value)} cycles`];
    bars(byId("times"), data.interval, (i) => [cycles("receive", receives(i)), cycles("run", stages[i].run), cycles("send", stages[i].send)]);
    bars(byId("memories"), data.capacity, (i) => [["in use", COLOURS["weights at rest"], stages[i].peak, Model.bytesText(stages[i].peak)]]);
  }

  const percent = (share) => (share === null ? "" : `${(100 * share).toFixed(1)} %`);
  const handed = (each) => Model.sum(each.sends.map((pair) => pair[1]));
  const columns = [
    { title: "stage", value: (each) => each.number },
    { title: "page", value: () => "its operators", link: (each) => each.page },
    { title: "group", value: (each) => each.group, note: "of cores on the chip" },
    { title: "operators", value: (each) => each.operators },
    { title: "from", value: (each) => each.first },
    { title: "cycles", value: (each) => takes(each.number), text: (each) => Model.count(takes(each.number)), note: "to receive, run and send, modelled" },
    { title: "run", value: (each) => each.run, text: (each) => Model.count(each.run) },
    { title: "send", value: (each) => each.send, text: (each) => Model.count(each.send) },
    { title: "sends", value: handed, text: (each) => Model.bytesText(handed(each)) },
    { title: "link", value: (each) => each.link, text: (each) => percent(each.link), note: "part of the interval in which it hands over" },
    { title: "mean GB/s in", value: (each) => each.rate, text: (each) => each.rate.toFixed(2), note: "into the busiest core, over the interval" },
    { title: "utilisation", value: (each) => each.utilisation ?? -1, text: (each) => percent(each.utilisation), note: "part of the matrix engines' peak, over the interval" },
    { title: "memory", value: (each) => each.peak, text: (each) => Model.bytesText(each.peak), note: "of a core" },
    { title: "hands over", value: (each) => each.sends.map((pair) => pair[0]).join(", ") },
  ];
  const mark = sortedTable(byId("stages"), columns, stages, (i) => select(i));
  function select(i) {
    selected = i;
    mark(i);
    charts.forEach((each) => each.redraw(false));
  }
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-interval").addEventListener("click", () => showTime(end - data.interval * us, end));
  byId("zoom-all").addEventListener("click", () => showTime(0, end));
  legend("parts", "a stage", Object.keys(PARTS), (name) => PARTS[name]);
  redrawn.push(draw);
  draw();
  select(stages.findIndex((_, i) => takes(i) === data.interval));
})();
