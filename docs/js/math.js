// Typesets what pymdownx.arithmatex has marked, with the KaTeX that comes with the site.
(function () {
  "use strict";

  function typeset(place) {
    var source = place.textContent.trim();
    var displayed = source.startsWith("\\[");
    if (window.katex && (displayed || source.startsWith("\\("))) {
      katex.render(source.slice(2, -2), place, { displayMode: displayed, throwOnError: false, strict: "ignore" });
    }
    place.classList.add("typeset"); // shown, also where KaTeX is missing: the source can be read too
  }

  // The element whose line a formula is in, and whose width it must not exceed.
  function holder(place) {
    var line = place.parentElement;
    while (getComputedStyle(line).display === "inline") line = line.parentElement;
    return line;
  }

  // A short formula stays in one piece; one with a piece wider than its line scrolls by itself, so that the page need not.
  function fit() {
    var places = Array.from(document.querySelectorAll("span.arithmatex"));
    places.forEach(function (place) { place.classList.remove("short", "wide"); });
    var kinds = places.map(function (place) {
      var room = holder(place).clientWidth;
      var pieces = Array.from(place.querySelectorAll(".katex-html > *")).map(function (piece) {
        return piece.getBoundingClientRect().width;
      });
      var whole = pieces.reduce(function (sum, width) { return sum + width; }, 0);
      if (room > 0 && Math.max.apply(null, pieces.concat(0)) > room) return "wide";
      return whole < 0.4 * room ? "short" : "";
    });
    places.forEach(function (place, i) { if (kinds[i]) place.classList.add(kinds[i]); });
  }

  function start() {
    document.querySelectorAll(".arithmatex").forEach(typeset);
    // Widths are known once the fonts are there; formulas have moved the headings by then: go to the one asked for.
    document.fonts.ready.then(function () {
      fit();
      window.addEventListener("resize", fit);
      var target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (target) target.scrollIntoView();
    });
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
