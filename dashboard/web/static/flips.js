// Marks flips on a chart: a dashed vertical line each, with a label in the first row where it has room.

const ROWS = 4;
const ROW_HEIGHT = 19;
const LONGEST_NAME = 24;

function text(change, named) {
  const share = change.to_stage === "cutover" || change.to_stage === "dual" ? ` ${change.to_rollout} %` : "";
  const name = change.tool.length > LONGEST_NAME ? `${change.tool.slice(0, LONGEST_NAME - 1)}…` : change.tool;
  return `${named ? `${name}: ` : ""}${change.to_stage}${share}`;
}

function freeRow(ends, left) {
  const row = ends.findIndex((end) => end < left);
  return row >= 0 ? row : ends.length < ROWS ? ends.length : -1;
}

export function markFlips(chart, changes, { named }) {
  const over = chart.over;
  for (const old of over.querySelectorAll(".flip")) old.remove();
  const ends = [];
  for (const change of [...changes].sort((a, b) => a.t - b.t)) {
    const left = Math.round(chart.valToPos(change.t, "x"));
    if (left < 0 || left > over.clientWidth) continue;
    const flip = document.createElement("div");
    flip.className = `flip ${change.to_stage}`;
    flip.style.left = `${left}px`;
    const label = document.createElement("span");
    label.textContent = text(change, named);
    label.style.maxWidth = `${Math.max(left, over.clientWidth - left) - 8}px`;
    flip.append(label);
    over.append(flip);
    const width = label.offsetWidth + 10;
    const leftward = left + width > over.clientWidth;
    flip.classList.toggle("leftward", leftward);
    const row = freeRow(ends, leftward ? left - width : left);
    // Where labels would lie on top of each other the line alone stays; the flag history names it.
    if (row < 0) label.remove();
    else {
      label.style.top = `${3 + row * ROW_HEIGHT}px`;
      ends[row] = leftward ? left : left + width;
    }
  }
}
