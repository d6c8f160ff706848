// Charts over time that zoom together, and what their lanes show: operators, and their cycles by kind.
"use strict";

const charts = [];
const POWERS = Array.from({ length: 40 }, (_, i) => 2 ** i);

function xAxis() {
  return { stroke: css("--text"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") },
    values: (u, splits) => splits.map((v) => Model.timeText(v)), space: 90 };
}

/** Return a chart of which uPlot draws axes, cursor and zoom, and `draw(ctx, u, x)` the rest. */
function timeChart(into, height, end, range, yAxis, draw, atCursor, onClick) {
  let down = 0;
  const u = new uPlot({
    width: into.clientWidth, height, legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false }, sync: { key: "time" } },
    scales: { x: { time: false, range: (_, low, high) => [Math.max(low, 0), Math.min(high, end)] }, y: { range } },
    axes: [xAxis(), { stroke: css("--text"), grid: { show: false }, ticks: { show: false }, ...yAxis }],
    series: [{}, { show: true, stroke: "transparent", points: { show: false } }],
    hooks: {
      draw: [(chart) => {
        const ctx = chart.ctx;
        ctx.save();
        ctx.beginPath();
        ctx.rect(chart.bbox.left, chart.bbox.top, chart.bbox.width, chart.bbox.height);
        ctx.clip();
        draw(ctx, chart, (v) => chart.valToPos(v, "x", true), (v) => chart.valToPos(v, "y", true));
        ctx.restore();
      }],
      setScale: [(chart, key) => {
        if (key !== "x") return;
        const { min, max } = chart.scales.x;
        for (const other of charts) {
          if (other !== chart && (other.scales.x.min !== min || other.scales.x.max !== max)) other.setScale("x", { min, max });
        }
      }],
      setCursor: [(chart) => { if (chart.cursor.left >= 0) atCursor(chart.posToVal(chart.cursor.left, "x")); }],
    },
  }, [[0, end], [0, 0]], into);
  u.over.addEventListener("mousedown", (e) => { down = e.clientX; });
  u.over.addEventListener("click", (e) => {
    if (Math.abs(e.clientX - down) < 4) onClick(u.posToVal(e.clientX - u.over.getBoundingClientRect().left, "x"));
  });
  u.over.addEventListener("wheel", (e) => {
    if (!e.ctrlKey) return;
    e.preventDefault();
    zoom(e.deltaY < 0 ? 0.7 : 1 / 0.7, u.posToVal(u.cursor.left, "x"));
  }, { passive: false });
  return u;
}

/** Scale the visible time by `factor` around a time, by default the middle. */
function zoom(factor, around) {
  if (!charts.length) return;
  const { min, max } = charts[0].scales.x;
  const at = around === undefined ? (min + max) / 2 : around;
  charts[0].setScale("x", { min: at - (at - min) * factor, max: at + (max - at) * factor });
}

function showTime(from, to) {
  if (charts.length) charts[0].setScale("x", { min: from, max: to });
}

/** Draw a lane of operators between `low` and `low + 1`, their names where they fit. `begins` are times. */
function operatorLane(ctx, u, x, y, operators, begins, kinds, select, low) {
  operators.forEach((each, i) => {
    const [left, right] = [x(begins[i]), x(begins[i + 1])];
    if (right < u.bbox.left || left > u.bbox.left + u.bbox.width) return;
    ctx.fillStyle = OPERATOR_COLOURS[kinds.indexOf(each.kind) % OPERATOR_COLOURS.length];
    ctx.globalAlpha = i === select ? 1 : 0.75;
    ctx.fillRect(left, y(low + 0.92), Math.max(right - left - 1, 0.5), y(low + 0.08) - y(low + 0.92));
    ctx.globalAlpha = 1;
    if (right - left <= 60) return;
    ctx.fillStyle = "#fff";
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.fillText(fitted(ctx, each.name, right - left - 10), left + 5, y(low + 0.5));
  });
}

/** Draw a lane of the cycles of operators by kind, in the order in which `run` spends them. */
function phaseLane(ctx, x, y, run, begins, low) {
  run.operators.forEach((each, i) => {
    const total = Model.sum(each.cycles) || 1;
    let done = 0;
    each.cycles.forEach((cycles, k) => {
      const at = (n) => x(begins[i] + ((begins[i + 1] - begins[i]) * n) / total);
      ctx.fillStyle = COLOURS[run.kinds[k]];
      if (cycles) ctx.fillRect(at(done), y(low + 0.92), Math.max(at(done + cycles) - at(done), 0.5), y(low + 0.08) - y(low + 0.92));
      done += cycles;
    });
  });
}

function legend(id, title, names, colour) {
  byId(id).replaceChildren(title,
    ...names.map((name, i) => make("span", {}, make("i", { style: `background:${colour(name, i)}` }), ` ${name}`)));
}

/** Return the end of a name that fits a width. */
function fitted(ctx, name, width) {
  let text = name;
  while (text.length > 1 && ctx.measureText(text).width > width) text = `…${text.slice(2)}`;
  return text.length > 1 ? text : "";
}
