// The chip from above: a cell per tile at its place.
"use strict";

/** Draw a cell per tile; `outlined(tile)` ones get a frame, `pick(tile)` is called on a click, `hover(tile)` on a move. */
function grid(canvas, chip, colour, outlined, pick, hover) {
  const { rows, columns, at, frames } = Model.floor(chip);
  const width = Math.min(canvas.parentElement.clientWidth, 16 * Math.max(chip.cores, columns), 620);
  const side = Math.min(width / columns, 34);
  const high = columns > 2 * rows ? side * Math.min(2, (0.75 * columns) / rows) : side;
  const ctx = context(canvas, side * columns + 2, high * rows + 2);
  ctx.translate(1, 1);
  const tiles = new Map();
  ctx.strokeStyle = css("--faint");
  for (const [row, column, down, right] of frames) ctx.strokeRect(column * side - 0.5, row * high - 0.5, right * side + 1, down * high + 1);
  for (let tile = 0; tile < chip.cores; tile++) {
    const [row, column] = at(tile);
    tiles.set(row * columns + column, tile);
    const edge = side > 3 ? 1 : 0;
    ctx.fillStyle = colour(tile);
    ctx.fillRect(column * side + edge / 2, row * high + edge / 2, side - edge, high - edge);
    if (!outlined(tile)) continue;
    ctx.strokeStyle = css("--text");
    ctx.lineWidth = 1.5;
    ctx.strokeRect(column * side + 1, row * high + 1, side - 2, high - 2);
  }
  const under = (e) => tiles.get(Math.floor((e.offsetY - 1) / high) * columns + Math.floor((e.offsetX - 1) / side));
  canvas.onclick = (e) => { const tile = under(e); if (tile !== undefined && pick) pick(tile); };
  canvas.onmousemove = (e) => { const tile = under(e); if (tile !== undefined && hover) hover(tile); };
}

/** Draw what the colours stand for: from 0 to the largest value. */
function scale(canvas, text, most) {
  const width = Math.min(canvas.parentElement.clientWidth, 360);
  const ctx = context(canvas, width, 34);
  const bar = ctx.createLinearGradient(0, 0, width, 0);
  for (let i = 0; i <= 16; i++) bar.addColorStop(i / 16, heat(i / 16));
  ctx.fillStyle = most ? bar : css("--empty");
  ctx.fillRect(0, 0, width, 12);
  ctx.fillStyle = css("--text");
  ctx.font = "12px system-ui, sans-serif";
  for (const [at, align] of [[0, "left"], [0.5, "center"], [1, "right"]]) {
    ctx.textAlign = align;
    if (most || !at) ctx.fillText(text(at * most), at * width, 28);
  }
}

const METRICS = {
  held: { run: "bytes of weights that a tile keeps between operators", one: "bytes of operands and result that a tile holds, padding left out", text: Model.bytesText },
  busy: { run: "part of the run in which a tile computes points of the tensor, not of padding", one: "part of the operator's time in which a tile computes points of the tensor, not of padding", text: (v) => `${(100 * v).toFixed(1)} %` },
  in: { run: "bytes that a tile receives, over the time of the run", one: "bytes that a tile receives, over the operator's time", text: (v) => `${v.toFixed(3)} GB/s` },
  out: { run: "bytes that a tile sends, over the time of the run; what several tiles take is sent once", one: "bytes that a tile sends, over the operator's time; what several tiles take is sent once", text: (v) => `${v.toFixed(3)} GB/s` },
};

function drawTiles(data) {
  const canvas = byId("chip");

  function draw() {
    const metric = byId("tiles-metric").value;
    const isRun = byId("tiles-scope").value === "run";
    const values = Model.tiles(data, metric, isRun ? null : Selection.operator);
    const most = Math.max(...values, 0);
    const least = Math.min(...values);
    const { text } = METRICS[metric];
    const share = (value) => (most ? value / most : 0);
    grid(canvas, data.chip, (tile) => (values[tile] ? heat(share(values[tile])) : css("--empty")), () => false, null,
      (tile) => { byId("tiles-readout").textContent = `${Model.tileName(data.chip, tile)}: ${text(values[tile])}`; });
    scale(byId("chip-scale"), text, most);
    const mean = Model.sum(values) / Math.max(values.length, 1);
    byId("tiles-note").textContent = `${METRICS[metric][isRun ? "run" : "one"]}: ${text(least)} to ${text(most)}, ${text(mean)} on average.`;
    byId("tiles-readout").textContent = "";
  }

  byId("tiles-metric").addEventListener("change", draw);
  byId("tiles-scope").addEventListener("change", draw);
  Selection.listeners.push(() => { if (byId("tiles-scope").value !== "run") draw(); });
  redrawn.push(draw);
  draw();
}

/** Return the colour of a share in [0, 1]: readable in both colour schemes and without red and green. */
function heat(share) {
  const stops = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(at), stops.length - 2);
  const mixed = stops[i].map((low, k) => Math.round(low + (stops[i + 1][k] - low) * (at - i)));
  return `rgb(${mixed.join()})`;
}
