// Marks flips on a chart: a dashed vertical line each, with a label in the first row where it has room.

const ROWS = 4;
const ROW_HEIGHT = 19;
const LONGEST_NAME = 24;
const TOGETHER = 3; // pixels

function stageOf(change) {
  const share = change.to_stage === "cutover" || change.to_stage === "dual" ? ` ${change.to_rollout} %` : "";
  return `${change.to_stage}${share}`;
}

function shortened(name) {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}

function text(changes, named) {
  const tools = new Set(changes.map((change) => change.tool));
  const [tool] = tools;
  const who = tools.size > 1 ? `${tools.size} tools` : shortened(tool);
  return `${named ? `${who}: ` : ""}${stageOf(changes[0])}`;
}

// Flips of several tools to the same stage at one place of the chart are one mark.
function marks(chart, changes) {
  const found = [];
  for (const change of [...changes].sort((a, b) => a.t - b.t)) {
    const left = Math.round(chart.valToPos(change.t, "x"));
    if (left < 0 || left > chart.over.clientWidth) continue;
    const same = found.find((mark) => left - mark.left <= TOGETHER && stageOf(mark.changes[0]) === stageOf(change));
    if (same) same.changes.push(change);
    else found.push({ left, changes: [change] });
  }
  return found;
}

function freeRow(ends, left) {
  const row = ends.findIndex((end) => end < left);
  return row >= 0 ? row : ends.length < ROWS ? ends.length : -1;
}

export function markFlips(chart, changes, { named }) {
  const over = chart.over;
  for (const old of over.querySelectorAll(".flip")) old.remove();
  const ends = [];
  for (const { left, changes: together } of marks(chart, changes)) {
    const flip = document.createElement("div");
    flip.className = `flip ${together[0].to_stage}`;
    flip.style.left = `${left}px`;
    const label = document.createElement("span");
    label.textContent = text(together, named);
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
