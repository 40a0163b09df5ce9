// The only script: a part of a page that is fetched each second, files that are dropped, forms that are sent once, copies, whether the desk is there.
"use strict";

async function refresh(part) {
  try {
    const response = await fetch(part.dataset.refresh, { headers: { Accept: "text/html" } });
    if (!response.ok) { return; }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(part.id);
    if (fresh === null || !fresh.dataset.refresh) { location.reload(); return; }
    part.replaceWith(fresh);
    setTimeout(refresh, 1000, fresh);
  } catch { checkAlive(); setTimeout(refresh, 1000, part); }
}

document.querySelectorAll("[data-refresh]").forEach((part) => setTimeout(refresh, 1000, part));

document.querySelectorAll("[data-drop]").forEach((area) => {
  const input = area.querySelector("input[type=file]");
  const isOver = (event, value) => { event.preventDefault(); area.classList.toggle("over", value); };
  area.addEventListener("dragover", (event) => isOver(event, true));
  area.addEventListener("dragleave", (event) => isOver(event, false));
  area.addEventListener("drop", (event) => { isOver(event, false); input.files = event.dataTransfer.files; });
});

document.querySelectorAll("form").forEach((form) => form.addEventListener("submit", () => {
  setTimeout(() => form.querySelectorAll("button").forEach((button) => { button.disabled = true; }));
}));
document.querySelectorAll("[data-copy]").forEach((button) => {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = button.dataset.copied;
  });
});

// a tab that was left open: its desk may have ended
async function checkAlive() {
  const ended = document.querySelector("[data-alive]");
  try {
    await fetch(ended.dataset.alive);
    ended.hidden = true;
  } catch { ended.hidden = false; }
}
addEventListener("focus", checkAlive);
addEventListener("visibilitychange", () => { if (!document.hidden) { checkAlive(); } });

addEventListener("pageshow", (event) => {
  if (event.persisted) { location.reload(); } // the browser went back to a page that it had kept
});
