// The chip from above: a cell per tile at its place.
"use strict";

/** Draw a cell per tile; `outlined(tile)` ones get a frame, `pick(tile)` is called on a click, `hover(tile)` on a move. */
function grid(canvas, chip, colour, outlined, pick, hover) {
  const places = Array.from({ length: chip.cores }, (_, tile) => Model.place(chip, tile));
  const nRows = Math.max(...places.map((place) => place[0])) + 1;
  const nColumns = Math.max(...places.map((place) => place[1])) + 1;
  const width = Math.min(canvas.parentElement.clientWidth, 16 * chip.cores, 620);
  // A chip of less than a row of blocks is drawn square: its tiles have no neighbours to lie between.
  const isSmall = chip.cores <= chip.rows * chip.tilesPerRow * 2;
  const across = isSmall ? Math.ceil(Math.sqrt(chip.cores)) : nColumns;
  const down = isSmall ? Math.ceil(chip.cores / across) : nRows;
  const at = (tile) => (isSmall ? [Math.floor(tile / across), tile % across] : places[tile]);
  const side = Math.min(width / across, 34);
  const high = isSmall ? side : side * Math.min(2, (0.75 * across) / down);
  const ctx = context(canvas, side * across, high * down);
  const tiles = new Map();
  for (let tile = 0; tile < chip.cores; tile++) {
    const [row, column] = at(tile);
    tiles.set(row * across + column, tile);
    ctx.fillStyle = colour(tile);
    ctx.fillRect(column * side + 0.5, row * high + 0.5, side - 1, high - 1);
    if (!outlined(tile)) continue;
    ctx.strokeStyle = css("--text");
    ctx.lineWidth = 1.5;
    ctx.strokeRect(column * side + 1, row * high + 1, side - 2, high - 2);
  }
  const under = (e) => tiles.get(Math.floor(e.offsetY / high) * across + Math.floor(e.offsetX / side));
  canvas.onclick = (e) => { const tile = under(e); if (tile !== undefined && pick) pick(tile); };
  canvas.onmousemove = (e) => { const tile = under(e); if (tile !== undefined && hover) hover(tile); };
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
      (tile) => { byId("tiles-readout").textContent = `tile ${tile}: ${text(values[tile])}`; });
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
