// Fetches this very page again every few seconds and replaces the regions marked data-live, whose text the server has
// already escaped. Scroll positions, open rows, the focus and everything typed stay as they are.

const seconds = Number(document.body.dataset.refreshSeconds);
const status = document.getElementById("live");
// A refused form stands at the address that it was sent to, which answers to nothing else.
const address = document.body.dataset.page ?? location.href;
const known = new Map();

export function onRefresh(listener) {
  document.addEventListener("changeover:refreshed", listener);
}

function say(text, kind = "") {
  status.hidden = false;
  status.className = `live ${kind}`;
  if (status.textContent !== text) status.textContent = text;
}

function isBusy(region) {
  // A row that somebody has opened must not slide away under their eyes.
  if (region.dataset.live === "unless-open" && region.querySelector("details[open]")) return true;
  const selection = document.getSelection();
  return Boolean(selection && !selection.isCollapsed && selection.intersectsNode(region));
}

function remember(region) {
  return {
    open: [...region.querySelectorAll("details[open][id]")].map((node) => node.id),
    scrolled: [...region.querySelectorAll(".scroll[id]")].map((node) => [node.id, node.scrollLeft, node.scrollTop]),
    focus: region.contains(document.activeElement) ? document.activeElement.id : "",
  };
}

function restore(before) {
  for (const id of before.open) document.getElementById(id)?.setAttribute("open", "");
  for (const [id, left, top] of before.scrolled) document.getElementById(id)?.scrollTo(left, top);
  if (before.focus) document.getElementById(before.focus)?.focus({ preventScroll: true });
}

function replace(region, fresh) {
  if (known.get(region.id) === fresh.innerHTML) return;
  known.set(region.id, fresh.innerHTML);
  const before = remember(region);
  region.replaceChildren(...document.importNode(fresh, true).childNodes);
  restore(before);
}

function update(page) {
  let paused = false;
  for (const region of document.querySelectorAll("[data-live][id]")) {
    const fresh = page.getElementById(region.id);
    if (!fresh) continue;
    if (isBusy(region)) paused = true;
    else replace(region, fresh);
  }
  return paused;
}

async function refresh() {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, cache: "no-store" });
  if (answer.status === 401 || answer.redirected) return say("Signed out: reload the page", "away");
  if (answer.status === 503) return say("The store cannot be read; trying again", "away");
  if (!answer.ok) return say(`The dashboard answered ${answer.status}; trying again`, "away");
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  // The empty page and the full one have nothing in common to replace.
  if (Boolean(document.getElementById("empty")) !== Boolean(page.getElementById("empty"))) return location.reload();
  const paused = update(page);
  say(paused ? "Live, open rows held still" : "Live", paused ? "paused" : "");
  document.dispatchEvent(new Event("changeover:refreshed"));
}

async function loop() {
  if (!document.hidden) {
    try {
      await refresh();
    } catch {
      say("The dashboard does not answer; trying again", "away");
    }
  }
  setTimeout(loop, seconds * 1000);
}

if (seconds > 0) {
  for (const region of document.querySelectorAll("[data-live][id]")) known.set(region.id, region.innerHTML);
  say("Live");
  setTimeout(loop, seconds * 1000);
}
