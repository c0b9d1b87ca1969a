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
