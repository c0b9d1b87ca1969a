// A box that scrolls, around a long formula or a wide output, must be reachable with the keyboard.
const boxes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const box = target.matches(".scrolls") ? target : target.closest(".scrolls");
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
});

function watch(box) {
  box.classList.add("scrolls");
  boxes.observe(box);
  for (const content of box.children) {
    boxes.observe(content);
  }
}

window.addEventListener("load", async () => {
  document.querySelectorAll(".cell_output .text_html > div").forEach(watch);
  await window.MathJax?.startup?.promise;
  document.querySelectorAll("mjx-container").forEach(watch);
});
