// Two runs: above on one time axis, below a row per operator, what changed.
"use strict";

(() => {
  const data = JSON.parse(byId("data").textContent);
  const kinds = [...new Set(data.runs.flatMap((run) => run.operators.map((each) => each.kind)))];
  const begins = data.runs.map((run) => Model.begins(run.operators).map((cycle) => (cycle * 1e6) / run.hertz));
  const end = Math.max(...begins.map((times) => times[times.length - 1])) || 1;
  const number = data.runs.map((run) => new Map(run.operators.map((each, i) => [each.name, i])));
  const tops = [3, 1];
  let shown = "";

  function lanes(ctx, u, x, y) {
    data.runs.forEach((run, r) => {
      const select = number[r].has(shown) ? number[r].get(shown) : -1;
      operatorLane(ctx, u, x, y, run.operators, begins[r], kinds, select, tops[r]);
      phaseLane(ctx, x, y, run, begins[r], tops[r] - 1);
      if (select < 0) return;
      const [left, right] = [x(begins[r][select]), x(begins[r][select + 1])];
      ctx.strokeStyle = RED;
      ctx.lineWidth = 2 * devicePixelRatio;
      ctx.strokeRect(left, y(tops[r] + 0.97), Math.max(right - left, 2), y(tops[r] - 0.97) - y(tops[r] + 0.97));
    });
  }

  const running = (r, time) => (time < begins[r][begins[r].length - 1] ? data.runs[r].operators[Model.operatorAt(begins[r], time)] : null);

  function say(time) {
    const texts = data.runs.map((run, r) => {
      const each = running(r, time);
      return `${run.name} ${each ? `${each.name}, ${Model.phaseAt(run, begins[r], time)}` : "has ended"}`;
    });
    byId("time-readout").textContent = `${Model.timeText(time)}: ${texts.join("; ")}.`;
  }

  function draw() {
    charts.splice(0).forEach((each) => each.destroy());
    const splits = { splits: () => [0.5, 1.5, 2.5, 3.5], values: () => ["phases B", "B", "phases A", "A"], size: 78 };
    const chart = timeChart(byId("runs"), 260, end, [0, 4], splits, lanes, say, (time) => {
      const isA = chart.posToVal(chart.cursor.top, "y") >= 2;
      const each = running(isA ? 0 : 1, time);
      if (each) select(data.rows.findIndex((row) => row.name === each.name));
    });
    charts.push(chart);
  }

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
  const mark = sortedTable(byId("operators"), columns, data.rows, (i) => select(i));
  function select(i) {
    shown = data.rows[i].name;
    mark(i);
    charts.forEach((each) => each.redraw(false));
  }
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-all").addEventListener("click", () => showTime(0, end));
  legend("operator-kinds", "operators:", kinds, (_, i) => OPERATOR_COLOURS[i % OPERATOR_COLOURS.length]);
  legend("kinds", "phases:", data.runs[0].kinds, (kind) => COLOURS[kind]);
  redrawn.push(draw);
  draw();
})();
