// Draws the loop rate over time, one line an arm, with errors as bars behind and flips as labelled vertical lines.
// A bucket without errors has no rate: the line has a gap there, never a zero.

import { onRefresh } from "./live.js";
import { markFlips } from "./flips.js";
import { bucketText, spanOf, tickTexts } from "./times.js";

const frame = document.querySelector("[data-series]");
const scheme = matchMedia("(prefers-color-scheme: dark)");
const ARMS = ["legacy", "dual", "structured"];
const HEIGHT = 290;
const FEWEST_STEPS = 10;
let plot = null;
let shown = "";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const percent = (share) => `${(share * 100).toFixed(1)} %`;

// A rate without its n says nothing.
const inWords = (loops, errors) => (errors ? `${percent(loops / errors)}  (${loops} of ${errors} errors)` : "no errors");

// Flips shortly before the first or after the last call belong into the picture; one that is years away from replayed
// calls would only squash them.
function window_(series) {
  const step = series.bucket_seconds;
  const first = Math.min(...series.points.map((point) => point.t));
  const last = Math.max(...series.points.map((point) => point.t)) + step;
  const margin = Math.max(3 * step, (last - first) * 0.15);
  const near = series.changes.filter((change) => change.t > first - margin && change.t < last + margin);
  const times = near.map((change) => change.t);
  const from = Math.min(first, ...times);
  const to = Math.max(last, ...times) + step / 4;
  const spare = Math.max(0, FEWEST_STEPS * step - (to - from)) / 2;
  return { from: from - spare, to: to + spare, near };
}

// One column a bucket; a point stands at the middle of its bucket.
function columns(series, arms) {
  const step = series.bucket_seconds;
  const starts = series.points.map((point) => point.t);
  const first = Math.min(...starts);
  const length = Math.round((Math.max(...starts) - first) / step) + 1;
  const times = Array.from({ length }, (_, index) => first + index * step + step / 2);
  const cells = Object.fromEntries(arms.map((arm) => [arm, new Array(length).fill(null)]));
  for (const point of series.points) cells[point.arm][Math.round((point.t - first) / step)] = point;
  return { times, cells };
}

function total(cells, key) {
  return cells.reduce((sum, cell) => sum + (cell ? cell[key] : 0), 0);
}

function line(arm, cells) {
  return {
    label: `${arm} arm`,
    stroke: colour(arm === "dual" ? "good" : arm),
    width: 2,
    dash: arm === "legacy" ? [7, 4] : undefined,
    points: { show: true, size: 6, fill: colour(arm === "dual" ? "good" : arm) },
    value: (_, __, ___, index) => {
      const chosen = index == null ? cells : [cells[index]];
      return inWords(total(chosen, "loops"), total(chosen, "errors"));
    },
  };
}

function bars(errors, step) {
  return {
    label: `errors per ${spanOf(step)}`,
    scale: "errors",
    fill: colour("bars"),
    stroke: colour("bars"),
    paths: uPlot.paths.bars({ size: [0.8, 60] }),
    points: { show: false },
    value: (_, __, ___, index) => (index == null ? `${errors.reduce((a, b) => a + b, 0)} in all` : `${errors[index]}`),
  };
}

function axis(options) {
  return {
    stroke: colour("soft"),
    grid: { stroke: colour("line"), width: 1 },
    ticks: { stroke: colour("line"), width: 1, size: 4 },
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    labelSize: 18,
    ...options,
  };
}

function options(series, width) {
  const arms = ARMS.filter((arm) => series.points.some((point) => point.arm === arm));
  const { times, cells } = columns(series, arms);
  const { from, to, near } = window_(series);
  const errors = times.map((_, index) => total(arms.map((arm) => cells[arm][index]), "errors"));
  const rate = (cell) => (cell?.errors ? (cell.loops / cell.errors) * 100 : null);
  return {
    data: [times, errors, ...arms.map((arm) => cells[arm].map(rate))],
    near,
    settings: {
      width,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      legend: { markers: { width: 0, fill: (chart, index) => chart.series[index].stroke?.(chart, index) ?? "transparent" } },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        x: { range: [from, to] },
        y: { range: (_, __, high) => [0, Math.min(118, Math.max(10, (high ?? 0) * 1.3))] },
        errors: { range: (_, __, high) => [0, Math.max(1, high ?? 1) * 3.5] },
      },
      series: [
        { label: "time", value: (_, seconds) => (seconds == null ? "whole chart" : bucketText(seconds, series.bucket_seconds)) },
        bars(errors, series.bucket_seconds),
        ...arms.map((arm) => line(arm, cells[arm])),
      ],
      axes: [
        axis({ label: "time (UTC)", space: 70, values: (_, splits, __, ___, step) => tickTexts(splits, step) }),
        axis({ label: "loop rate (% of errors)", size: 46, values: (_, ticks) => ticks.map((tick) => (tick > 100 ? "" : `${tick} %`)) }),
      ],
    },
  };
}

function draw(series) {
  const place = frame.querySelector(".plot");
  plot?.destroy();
  plot = null;
  place.replaceChildren();
  const errors = series.points.reduce((sum, point) => sum + point.errors, 0);
  if (errors === 0) {
    const note = document.createElement("p");
    note.textContent = series.points.length ? "No errors in this time, so there is no loop rate to draw." : "No calls yet.";
    place.append(note);
    return;
  }
  const { data, settings, near } = options(series, place.clientWidth);
  const mark = (chart) => markFlips(chart, near, { named: frame.dataset.named !== "no" });
  plot = new uPlot({ ...settings, hooks: { draw: [mark] } }, data, place);
  const missing = series.changes.length - near.length;
  frame.querySelector(".aside").textContent = missing
    ? `${missing} flip${missing > 1 ? "s" : ""} outside of the time shown here; the flag history has them all.`
    : "";
}

async function load() {
  const answer = await fetch(frame.dataset.series, { cache: "no-store" });
  if (!answer.ok) return;
  const text = await answer.text();
  if (text === shown) return;
  shown = text;
  draw(JSON.parse(text));
}

if (frame) {
  const redraw = () => shown && draw(JSON.parse(shown));
  load().catch(() => {});
  onRefresh(() => load().catch(() => {}));
  scheme.addEventListener("change", redraw);
  new ResizeObserver(() => {
    const width = frame.querySelector(".plot").clientWidth;
    if (plot && width && width !== plot.width) plot.setSize({ width, height: HEIGHT });
  }).observe(frame);
}
