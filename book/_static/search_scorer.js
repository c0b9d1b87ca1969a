// Part of language_data.js: how a query is cut into words, and which results come first.

// Accents and raised digits make no difference: see FoldedEnglish.
function fold(text) {
  return text.normalize("NFKD").replace(/\p{M}/gu, "");
}

function splitQuery(query) {
  return fold(query)
    .split(/[^\p{Letter}\p{Number}_\p{Emoji_Presentation}]+/gu)
    .filter((term) => term);
}

// Chapters, then the other pages, then the modules of the API; a name of the library itself is first.
var Scorer = {
  score: ([docname, title, anchor, description, score]) => {
    if (description) {
      return score >= 40 ? score + 40 : score - 40;
    }
    const module = docname.startsWith("book/api/");
    return score + (module ? -20 : OTHER_PAGES.has(docname) ? 20 : 40);
  },
  objNameMatch: 40,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
const OTHER_PAGES = new Set([
  "book/index",
  "book/notation",
  "book/verdicts",
  "book/errata",
  "book/datasets",
  "book/glossary",
  "book/install",
  "book/help",
  "book/cite",
  "book/changelog",
  "book/statements",
  "book/bibliography",
]);
