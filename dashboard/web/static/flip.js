// Says beside the form what a flip will do, before it is sent. Without this script all explanations stand there.

const form = document.getElementById("flip");

function describe() {
  const stage = form.elements.stage.value;
  const rollout = Number(form.elements.rollout.value);
  const share = stage === "cutover" && rollout <= 0 ? "none" : rollout >= 100 ? "all" : "some";
  for (const text of form.querySelectorAll("[data-stage]")) {
    text.hidden = text.dataset.stage !== stage || (text.dataset.share ?? share) !== share;
  }
  for (const place of form.querySelectorAll("[data-rollout]")) place.textContent = `${rollout} %`;
}

if (form) {
  form.addEventListener("input", describe);
  describe();
}
