// How times stand on a chart: UTC, 24 hours, the date only where it changes.

const UNITS = [[86400, "day"], [3600, "h"], [60, "min"], [1, "s"]];

const iso = (seconds) => new Date(seconds * 1000).toISOString();

export function spanOf(seconds) {
  const [size, name] = UNITS.find(([unit]) => seconds >= unit) ?? [1, "s"];
  const number = seconds / size;
  return `${number} ${name}${name === "day" && number !== 1 ? "s" : ""}`;
}

export function bucketText(middle, step) {
  return `${iso(middle - step / 2).replace("T", " ").slice(0, step < 60 ? 19 : 16)} + ${spanOf(step)}`;
}

export function tickTexts(ticks, step) {
  let day = "";
  return ticks.map((tick) => {
    if (tick % 1) return "";
    const text = iso(tick);
    const date = text.slice(0, 10);
    const clock = step >= 86400 ? "" : text.slice(11, step < 60 ? 19 : 16);
    const shown = date === day ? clock : [clock, date].filter(Boolean).join("\n");
    day = date;
    return shown;
  });
}
