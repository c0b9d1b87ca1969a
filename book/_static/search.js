// The search in the dialog (Ctrl+K) and on its page.

if (typeof Search !== "undefined") {
  const MANY = 30;
  const { _performSearch, performObjectSearch } = Search;

  // A list of seven hundred functions is no answer, and one line per page or name is enough. The
  // best results are the last ones.
  Search._performSearch = (query, ...terms) => {
    const found = new Map();
    for (const result of _performSearch(fold(query), ...terms).reverse()) {
      const key = `${result[0]} ${result[1]}`;
      if (!found.has(key)) {
        found.set(key, result);
      }
    }
    return [...found.values()].slice(0, MANY).reverse();
  };

  // Words count by how rare they are, and a page by the best of its names (title, sections, subjects)
  // for them, in any order and form, before what its text has.
  const stemmer = new Stemmer();
  const stems = (text) =>
    new Set(
      splitQuery(text.toLowerCase())
        .filter((word) => !stopwords.includes(word))
        .map((word) => stemmer.stemWord(word)),
    );
  let names = null; // stems, page, place, how much it counts
  const readNames = ({ titles, alltitles, indexentries }) => [
    ...titles.map((title, page) => [stems(title), page, "", 1]),
    ...Object.entries(alltitles).flatMap(([title, places]) =>
      places.map(([page, id]) => [stems(title), page, id ? `#${id}` : "", 0.8]),
    ),
    ...Object.entries(indexentries).flatMap(([entry, places]) =>
      places.filter(([, , main]) => main).map(([page]) => [stems(entry), page, "", 1]),
    ),
  ];
  Search.performTermsSearch = (searchTerms, excludedTerms) => {
    const { docnames, filenames, terms, titles, titleterms } = Search._index;
    names ??= readNames(Search._index);
    const pages = (list) => (list === undefined ? [] : [list].flat());
    const starting = (table, word) =>
      Object.hasOwn(table, word) || word.length < 3
        ? pages(table[word])
        : Object.keys(table).flatMap((term) => (term.startsWith(word) ? pages(table[term]) : []));
    const rarity = new Map();
    const found = new Map(); // page -> the words it has
    const note = (page, word) => found.set(page, (found.get(page) ?? new Set()).add(word));
    for (const word of searchTerms) {
      const having = new Set([...starting(terms, word), ...starting(titleterms, word)]);
      rarity.set(word, Math.log(1 + docnames.length / (1 + having.size)));
      having.forEach((page) => note(page, word));
    }
    const other = Math.log(1 + docnames.length / 10); // a word that nobody asked for
    const sum = (words) => [...words].reduce((all, word) => all + (rarity.get(word) ?? other), 0);
    const whole = sum(searchTerms);
    const best = new Map(); // page -> how well a name fits, and where it leads
    for (const [words, page, place, weight] of names) {
      const common = [...words].filter((word) => searchTerms.has(word));
      common.forEach((word) => note(page, word)); // a subject need not be in the text
      const fit = common.length && (weight * sum(common)) / sum(new Set([...words, ...searchTerms]));
      if (fit > (best.get(page)?.[0] ?? 0)) {
        best.set(page, [fit, place]);
      }
    }
    const excluded = new Set([...excludedTerms].flatMap((word) => pages(terms[word])));
    return [...found]
      .map(([page, words]) => [page, sum(words) / whole, ...(best.get(page) ?? [0, ""])])
      .filter(([page, share]) => share > 0.5 && !excluded.has(page))
      .map(([page, share, fit, place]) => [
        ...[docnames[page], titles[page], fit > 0.4 ? place : "", null],
        ...[Math.round(20 * share + 80 * fit), filenames[page]],
      ]);
  };

  // All functions of `s3vm_lib.cccp` have "cccp" in their full name: their own names decide.
  Search.performObjectSearch = (term, terms) =>
    performObjectSearch(term, terms).filter(([, name]) =>
      name.split(".").pop().toLowerCase().includes(term),
    );

  // A summary is text of the article, without what only the eye or the ear needs.
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const unread = ".headerlink, script, style, mjx-math, .toggle-details, .onlyprint, details.hide";
    page.querySelectorAll(unread).forEach((element) => element.remove());
    const place = anchor && page.getElementById(anchor.slice(1));
    return (place || page.querySelector("article")).textContent.replace(/\s+/g, " ");
  };

  // The index is read when somebody is about to search.
  const dialog = document.getElementById("pst-search-dialog");
  const root = document.documentElement.dataset.content_root;
  let wanted = location.pathname.endsWith("/search.html");
  new MutationObserver(() => {
    if (dialog.open && !wanted) {
      wanted = true;
      DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false; // a list of titles, while one types
      Search.loadIndex(`${root}searchindex.js`);
    }
  }).observe(dialog, { attributes: true, attributeFilter: ["open"] });
}
