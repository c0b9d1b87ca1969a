// What really scrolls, a long formula or a wide output, can be reached with the keyboard, says what
// it is, and shows whether it goes on.
const BOXES =
  ".bd-article :is(mjx-container, .pst-scrollable-table-container," +
  " .cell_output .text_html > div, .cell_output .text_html > details > div)";
const NAMES = { "MJX-CONTAINER": "Formula, scrolls sideways", DIV: "Table, scrolls" };

function scrolls(box) {
  if (box.matches("mjx-container")) {
    // Letters lean out of a formula that fits, far ones until their font is there: no scrollWidth.
    const formula = box.querySelector("mjx-math");
    return formula.getBoundingClientRect().width > box.clientWidth + 8;
  }
  const { overflowX, overflowY } = getComputedStyle(box);
  const moves = (overflow) => overflow === "auto" || overflow === "scroll";
  return (
    (box.scrollWidth > box.clientWidth + 1 && moves(overflowX)) ||
    (box.scrollHeight > box.clientHeight + 1 && moves(overflowY))
  );
}

function markBoxes() {
  const boxes = [...document.querySelectorAll(BOXES)];
  const answers = boxes.map((box) => box.offsetParent !== null && scrolls(box));
  const wide = boxes.map((box) => box.scrollWidth > box.clientWidth + 1);
  boxes.forEach((box, i) => {
    const marks = { tabindex: 0, role: "group", "aria-label": NAMES[box.tagName] };
    for (const [name, value] of Object.entries(marks)) {
      if (answers[i]) {
        box.setAttribute(name, value);
      } else {
        box.removeAttribute(name);
      }
    }
    box.classList.toggle("wide", answers[i]);
    box.classList.toggle("sideways", answers[i] && wide[i]);
    box.classList.remove("more");
  });
  boxes.filter((_, i) => answers[i]).forEach(showRest); // asks for places, once nothing moves them
}

function showRest(box) {
  const rest = box.scrollWidth - box.clientWidth - box.scrollLeft;
  box.classList.toggle("more", box.matches(".wide") && rest > 8);
}

function later(work, wait) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait);
  };
}

// The panel of contents marks the section that is being read, and keeps it in sight.
function followReader() {
  const links = [...document.querySelectorAll("#page-contents a[href^='#']")];
  const panel = document.querySelector(".bd-sidebar-secondary");
  const headings = links.map((link) => {
    const section = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    return section?.querySelector("h1, h2, h3, h4, h5, h6") ?? section;
  });
  if (!links.length) {
    return;
  }
  let marked = null;
  let chosen = null; // by a click or the address, until the reader moves on

  function mark(link) {
    if (link === marked) {
      return;
    }
    marked = link;
    for (const one of links) {
      one.classList.toggle("active", one === link);
      one.ariaCurrent = one === link ? "true" : null;
    }
    for (const entry of document.querySelectorAll("#page-contents .toc-entry")) {
      entry.classList.toggle("active", Boolean(link) && entry.contains(link));
    }
    if (!link) {
      return; // above the first section
    }
    const [place, frame] = [link.getBoundingClientRect(), panel.getBoundingClientRect()];
    if (place.top < frame.top || place.bottom > frame.bottom) {
      panel.scrollTop += place.top - frame.top - frame.height / 3;
    }
  }

  function update() {
    const page = document.documentElement;
    const rest = page.scrollHeight - scrollY - innerHeight;
    const line = Math.max(innerHeight / 4, innerHeight - rest); // the last sections have their turn
    const passed = headings.filter((one) => one && one.getBoundingClientRect().top <= line);
    mark(chosen ?? links[headings.lastIndexOf(passed.at(-1))]);
  }

  const choose = () => {
    chosen = links.find((link) => link.hash === location.hash && link.hash) ?? null;
    update();
  };
  let asked = false;
  addEventListener(
    "scroll",
    () => {
      if (!asked) {
        asked = true;
        requestAnimationFrame(() => {
          asked = false;
          update();
        });
      }
    },
    { passive: true },
  );
  for (const move of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    addEventListener(move, () => (chosen = null), { passive: true });
  }
  addEventListener("hashchange", choose);
  addEventListener("resize", update);
  choose();
}

addEventListener("DOMContentLoaded", followReader);
addEventListener("DOMContentLoaded", () => {
  // The theme does so too, but only once all pictures have come.
  for (const box of document.querySelectorAll(".bd-article pre")) {
    box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
  }
  markBoxes();
  const scrolled = ({ target }) => target.matches?.(BOXES) && showRest(target);
  addEventListener("scroll", scrolled, { capture: true, passive: true });
  // Not only a window changes widths: a fold opens, a panel slides away, a font comes late.
  const observer = new ResizeObserver(later(markBoxes, 100));
  for (const box of document.querySelectorAll(BOXES)) {
    observer.observe(box);
    if (box.firstElementChild) {
      observer.observe(box.firstElementChild);
    }
  }
});

// On paper nothing can be unfolded.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll(".bd-article details:not([open])")];
  opened.forEach((fold) => (fold.open = true));
});
addEventListener("afterprint", () => opened.forEach((fold) => (fold.open = false)));

// An address whose part has moved to another chapter leads on.
addEventListener("DOMContentLoaded", async () => {
  const part = decodeURIComponent(location.hash.slice(1));
  const chapter = /\/book\/[^/]*$/.test(location.pathname);
  if (!part || !chapter || document.getElementById(part)) {
    return;
  }
  const places = await (await fetch("../_static/places.json")).json();
  if (Object.hasOwn(places, part)) {
    location.replace(places[part] + location.hash);
  }
});
