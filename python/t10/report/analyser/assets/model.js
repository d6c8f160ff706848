// What the page computes from its data: nothing here draws. Tested in node against the Python that it follows.
"use strict";

const Model = {
  /** Return the numbers that value, count, value, count stand for, padded with zeros to `n`. */
  unrun(runs, n) {
    const numbers = [];
    for (let i = 0; i < runs.length; i += 2) for (let k = 0; k < runs[i + 1]; k++) numbers.push(runs[i]);
    while (numbers.length < n) numbers.push(0);
    return numbers;
  },

  sum: (numbers) => numbers.reduce((a, b) => a + b, 0),

  /** Return the cycles until an operator has its operands; those in which it computes. Kinds are in their order of time. */
  arriving: (each) => each.cycles[0] + each.cycles[1] + each.cycles[2],
  computing: (each) => each.cycles[3],

  /** Return how many steps a program has: patterns, [count, [name, cycles, bytes, name, ...]]. */
  stepCount: (program) => Model.sum(program.map(([count, numbers]) => (count * numbers.length) / 3)),

  /** Return the steps of a program in their order of time, [name, cycles, bytes]. */
  steps(program) {
    const found = [];
    for (const [count, numbers] of program) {
      for (let n = 0; n < count; n++) {
        for (let i = 0; i < numbers.length; i += 3) found.push([numbers[i], numbers[i + 1], numbers[i + 2]]);
      }
    }
    return found;
  },

  /** Return the number of the step that runs at a cycle of its operator. */
  stepAt(steps, cycle) {
    let done = 0;
    for (let i = 0; i < steps.length; i++) {
      done += steps[i][1];
      if (cycle < done) return i;
    }
    return steps.length - 1;
  },

  /** Return the modelled cycle in which every operator begins, and the end of the run. */
  begins(operators) {
    const begins = [0];
    for (const each of operators) begins.push(begins[begins.length - 1] + Model.sum(each.cycles));
    return begins;
  },

  /** Return the number of the operator that runs at a cycle. */
  operatorAt(begins, cycle) {
    let low = 0;
    let high = begins.length - 2;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (begins[middle] <= cycle) low = middle;
      else high = middle - 1;
    }
    return low;
  },

  /** Return the kind of cycles that a run spends at a time; `begins` are the times of its operators. */
  phaseAt(run, begins, time) {
    const i = Model.operatorAt(begins, time);
    const { cycles } = run.operators[i];
    const at = ((time - begins[i]) / (begins[i + 1] - begins[i] || 1)) * Model.sum(cycles);
    let done = 0;
    let phase = "";
    cycles.forEach((n, k) => { if (n && at >= done) phase = run.kinds[k]; done += n; });
    return phase;
  },

  /**
   * Return stretches of time, [begin, end, moment]: operands arrive, the nest runs, the result is made.
   * The last two share their time: the fuller of them is shown, `total` gives the bytes of a moment.
   */
  stretches(operators, begins, total) {
    const found = [];
    operators.forEach((each, i) => {
      const arrive = Model.arriving(each);
      const fuller = total(3 * i + 2) > total(3 * i + 1) ? 3 * i + 2 : 3 * i + 1;
      if (arrive) found.push([begins[i], begins[i] + arrive, 3 * i]);
      const moment = !arrive && total(3 * i) > total(fuller) ? 3 * i : fuller;
      if (begins[i] + arrive < begins[i + 1]) found.push([begins[i] + arrive, begins[i + 1], moment]);
    });
    return found;
  },

  /**
   * Return when every stage of a pipeline takes, runs and sends the first results, until the first one is done:
   * {stage, result, part, from, to} in cycles. A hand-over is sent by a stage and taken by the next at once.
   */
  pipeline(stages, interval) {
    const latency = Model.sum(stages.map((each) => each.run + each.send));
    const found = [];
    for (let result = 0; result * interval < latency; result++) {
      let at = result * interval;
      stages.forEach((each, stage) => {
        found.push({ stage, result, part: "run", from: at, to: at + each.run });
        at += each.run;
        if (!each.send) return;
        found.push({ stage, result, part: "send", from: at, to: at + each.send });
        if (stage + 1 < stages.length) found.push({ stage: stage + 1, result, part: "receive", from: at, to: at + each.send });
        at += each.send;
      });
    }
    return found.filter((each) => each.from < latency);
  },

  /** Return the place of a core along every axis. */
  coordinates(plan, core) {
    const where = plan.fOp.map(() => 0);
    for (const axis of [...plan.coreOrder].reverse()) {
      where[axis] = core % plan.fOp[axis];
      core = Math.floor(core / plan.fOp[axis]);
    }
    return where;
  },

  cores: (plan) => plan.fOp.reduce((a, b) => a * b, 1),

  nSteps: (plan) => plan.steps.reduce((a, b) => a * b, 1),

  /** Return where a core starts along every axis. */
  phases(plan, where) {
    return plan.phases.map((terms, axis) => {
      let phase = 0;
      for (const [sharers, divisor, modulus, stride] of terms) {
        let number = 0;
        for (const sharer of sharers) number = number * plan.fOp[sharer] + where[sharer];
        phase += stride * (Math.floor(number / divisor) % modulus);
      }
      return phase % plan.lengths[axis];
    });
  },

  /** Return the loop positions at a step: every sweep of an inner loop runs back after one that ran forth. */
  positions(plan, step) {
    const digits = {};
    for (const axis of [...plan.loopOrder].reverse()) {
      digits[axis] = step % plan.steps[axis];
      step = Math.floor(step / plan.steps[axis]);
    }
    const positions = plan.steps.map(() => 0);
    let outside = 0;
    for (const axis of plan.loopOrder) {
      positions[axis] = outside % 2 ? plan.steps[axis] - 1 - digits[axis] : digits[axis];
      outside = outside * plan.steps[axis] + digits[axis];
    }
    return positions;
  },

  /** Return where a core's windows of a tensor start along every axis, within the part of the axis; 0 if uncut. */
  starts(plan, slot, where, positions) {
    const phases = Model.phases(plan, where);
    return phases.map((phase, axis) =>
      plan.tensors[slot].ft[axis] > 1 ? (phase + positions[axis] * plan.rp[axis]) % plan.lengths[axis] : 0,
    );
  },

  /** Return the axis along which a tensor rotates, the outermost if there are several; -1 if it does not. */
  rotationAxis(plan, slot) {
    const axis = plan.loopOrder.find((each) => plan.tensors[slot].ft[each] > 1);
    return axis === undefined ? -1 : axis;
  },

  /** Return the slots of the tensors that rotate. */
  rotating: (plan) => plan.tensors.map((_, slot) => slot).filter((slot) => Model.rotationAxis(plan, slot) >= 0),

  /** Return the cores of the ring of a core, in the order in which pieces travel: each passes to the one after it. */
  ring(plan, slot, core) {
    const axis = Model.rotationAxis(plan, slot);
    if (axis < 0) return [core];
    const zero = plan.steps.map(() => 0);
    const own = plan.tensors[slot].axes;
    const rank = {};
    const members = {};
    let mine = "";
    for (let each = 0; each < Model.cores(plan); each++) {
      const where = Model.coordinates(plan, each);
      const starts = Model.starts(plan, slot, where, zero);
      const window = own.map((a) => [where[a], starts[a]]).join();
      rank[window] = (rank[window] || 0) + 1;
      const key = [own.map((a) => [where[a], a === axis ? 0 : starts[a]]).join(), rank[window]].join("|");
      (members[key] = members[key] || []).push([starts[axis], each]);
      if (each === core) mine = key;
    }
    // A core receives from the member whose window starts where its own ends, so pieces travel to lower starts.
    const ring = members[mine].sort((a, b) => b[0] - a[0]).map((pair) => pair[1]);
    const at = ring.indexOf(core);
    return [...ring.slice(at), ...ring.slice(0, at)];
  },

  /** Return the bytes that one shift of a tensor along an axis passes on. */
  shiftBytes(plan, slot, axis) {
    const tensor = plan.tensors[slot];
    const bytes = tensor.partition.reduce((a, b) => a * b, tensor.itemBytes);
    return Math.round((bytes * plan.rp[axis]) / (plan.lengths[axis] / tensor.ft[axis]));
  },

  /** Return a number per tile: `metric` is held, busy, in or out; of one operator, or of the run where it is null. */
  tiles(data, metric, operator) {
    const n = data.chip.cores;
    const shown = operator === null ? data.operators : [data.operators[operator]];
    const cycles = Model.sum(shown.map((each) => Model.sum(each.cycles)));
    if (metric === "held") {
      return operator === null
        ? Model.unrun(data.atRest, n)
        : Model.unrun(data.classes[shown[0].class].tiles.held, n);
    }
    const total = new Array(n).fill(0);
    const weights = new Map();
    for (const each of shown) {
      weights.set(each.class, (weights.get(each.class) || 0) + (metric === "busy" ? Model.computing(each) : 1));
    }
    for (const [number, weight] of weights) {
      const tiles = data.classes[number].tiles;
      Model.unrun(metric === "busy" ? tiles.useful : tiles[metric], n).forEach((value, tile) => {
        total[tile] += value * weight;
      });
    }
    return total.map((value) => (metric !== "busy" ? Model.meanRate(value, cycles, data.chip.hertz) : cycles ? value / cycles : 0));
  },

  /**
   * Return where tiles are drawn: {rows, columns, at(tile), frames}; a frame is a chip of several, [row, column, rows,
   * columns]. A level without columns, and a chip of less than two blocks of tiles, is drawn as a square.
   */
  floor(chip) {
    const [[, count, columns, missing = []], ...outer] = chip.levels;
    const isSmall = columns > 0 || count <= chip.rows * chip.tilesPerRow * 2;
    const n = count + missing.length;
    const across = columns || Math.ceil(Math.sqrt(n));
    const spot = (tile) => Model.position(tile, missing);
    let floor = isSmall
      ? { rows: Math.ceil(n / across), columns: across, at: (tile) => [Math.floor(spot(tile) / across), spot(tile) % across] }
      : { rows: chip.rows, columns: Math.ceil(count / (chip.tilesPerRow * chip.rows)) * chip.tilesPerRow, at: (tile) => Model.place(chip, tile) };
    floor.frames = [];
    let size = count;
    for (const [, groups, wide, absent = []] of outer) {
      const positions = groups + absent.length;
      const [inner, n, grid] = [floor, size, wide || Math.ceil(Math.sqrt(positions))];
      const corner = (group) => {
        const at = Model.position(group, absent);
        return [Math.floor(at / grid) * (inner.rows + 1), (at % grid) * (inner.columns + 1)];
      };
      const moved = ([row, column], [down, right]) => [row + down, column + right];
      const each = [...Array(groups).keys()].map(corner);
      floor = {
        rows: Math.ceil(positions / grid) * (inner.rows + 1) - 1,
        columns: Math.min(grid, positions) * (inner.columns + 1) - 1,
        at: (tile) => moved(inner.at(tile % n), corner(Math.floor(tile / n))),
        frames: each.flatMap((at) => [[...at, inner.rows, inner.columns],
          ...inner.frames.map(([row, column, ...rest]) => [...moved([row, column], at), ...rest])]),
      };
      size *= groups;
    }
    return floor;
  },

  /** Return the position of a group in a grid of which positions, ascending, are missing. */
  position: (group, missing) => missing.reduce((at, each) => (each <= at ? at + 1 : at), group),

  /** Return the row and column of a tile on one IPU. */
  place(chip, tile) {
    const pair = Math.floor(tile / chip.tilesPerRow);
    const block = Math.floor(pair / chip.rows);
    const row = pair % chip.rows;
    return [block % 2 ? chip.rows - 1 - row : row, block * chip.tilesPerRow + (tile % chip.tilesPerRow)];
  },

  /** Return the name of a tile: its number, and where there are several levels, the number of its group in each. */
  tileName(chip, tile) {
    const parts = [];
    let size = 1;
    for (const [name, count] of chip.levels) {
      parts.unshift(`${name} ${Math.floor(tile / size) % count}`);
      size *= count;
    }
    return chip.levels.length > 1 ? `tile ${tile} (${parts.join(", ")})` : `tile ${tile}`;
  },

  /** Return GB/s: bytes over all of the time. */
  meanRate: (bytes, cycles, hertz) => (cycles ? (bytes * hertz) / cycles / 1e9 : 0),

  /** Return the class of a cell of a table: numbers stand at the right, long names wrap. */
  cellClass: (value) => (typeof value === "number" ? "number" : String(value).length > 32 ? "long" : ""),

  things: (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`,

  /** Return a number of bytes with the smallest unit in which it is less than 1024 when it is rounded. */
  bytesText(n) {
    if (Math.round(n) < 1024) return `${Math.round(n)} B`;
    for (const [unit, size] of [["KiB", 2 ** 10], ["MiB", 2 ** 20]]) {
      const text = (n / size).toFixed(1);
      if (Number(text) < 1024) return `${text} ${unit}`;
    }
    return `${(n / 2 ** 30).toFixed(1)} GiB`;
  },

  /** Return where the scale of a chart of memory ends: above the capacity, unless nothing would be seen then. */
  memoryScale: (most, capacity) => (most > 0.4 * capacity ? Math.max(capacity, most) * 1.04 : Math.max(most, 1) * 1.15),

  capacityText: (top, capacity) => (top >= capacity ? "the red line is the capacity"
    : `the capacity, ${Model.bytesText(capacity)}, is off this scale`),

  timeText(microseconds) {
    // As it is rounded: 999.96 is no 1000.0.
    if (Math.round(microseconds * 10) >= 10000) return `${(microseconds / 1000).toFixed(3)} ms`;
    return `${microseconds.toFixed(microseconds < 10 ? 3 : 1)} µs`;
  },

  count: (n) => Math.round(n).toLocaleString("en-US"),
};

if (typeof module !== "undefined") module.exports = Model;
