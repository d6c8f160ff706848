// Elements, colours, and the operator that is selected: what all drawings share.
"use strict";

const COLOURS = {
  setup: "#4a6fd0", relayout: "#e0a500", compute: "#3a923a", shift: "#3b9bb3", reduce: "#b05ab0", wait: "#d04a4a",
  "code and stacks": "#8a8a8a", "weights at rest": "#4a6fd0", inputs: "#3b9bb3", results: "#3a923a",
  operands: "#e0a500", accumulators: "#b05ab0", "shift buffer": "#d0703a",
};
/** Kinds of operators: dull, so that none is taken for a kind of cycles. */
const OPERATOR_COLOURS = ["#4c566a", "#8b6f58", "#5f7a76", "#8a6470", "#6b6a45", "#77778f", "#9a8a6a"];
const RED = "#d04a4a";

/** Return the value of a colour of the style sheet, light or dark. */
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Return a new element; children are elements or texts, never HTML: names of a model may hold any. */
function make(tag, attributes = {}, ...children) {
  const inSvg = ["svg", "g", "rect", "text", "path", "line"].includes(tag);
  const element = inSvg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const byId = (id) => document.getElementById(id);

/** Return a canvas context of a given size in CSS pixels, sharp on any screen. */
function context(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  return ctx;
}

const Selection = {
  operator: 0,
  listeners: [],
  select(number) {
    Selection.operator = number;
    for (const each of Selection.listeners) each(number);
  },
};

/** Redraw when the width of the window or its colours change. */
const redrawn = [];
let lastWidth = window.innerWidth;
window.addEventListener("resize", () => {
  if (window.innerWidth === lastWidth) return;
  lastWidth = window.innerWidth;
  redrawn.forEach((draw) => draw());
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redrawn.forEach((draw) => draw()));
