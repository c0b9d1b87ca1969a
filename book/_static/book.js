// A formula that scrolls in its box must be reachable with the keyboard.
function makeFormulasFocusable() {
  for (const box of document.querySelectorAll("mjx-container")) {
    if (box.scrollWidth > box.clientWidth) {
      box.tabIndex = 0;
    } else {
      box.removeAttribute("tabindex");
    }
  }
}

window.addEventListener("load", () => {
  if (window.MathJax?.startup?.promise) {
    window.MathJax.startup.promise.then(() => document.fonts.ready).then(makeFormulasFocusable);
    window.addEventListener("resize", makeFormulasFocusable);
  }
});
