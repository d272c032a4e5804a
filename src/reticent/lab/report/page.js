"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

  // Tables: a button in every heading sorts by its column, and again the other way round.
  for (const table of all("table.sortable")) {
    const heads = all("thead th", table);
    const body = table.tBodies[0];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      const name = head.firstChild;
      head.insertBefore(button, name);
      button.append(name);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const value = (row) => row.cells[column].dataset.value ?? "";
        const compare = (a, b) => {
          const [x, y] = [value(a), value(b)];
          if (x === "" || y === "") return (x === "") - (y === "");  // what is not known stays last
          const order = isNaN(x) || isNaN(y) ? x.localeCompare(y, "en") : x - y;
          return down ? -order : order;
        };
        body.append(...[...body.rows].sort(compare));
      });
    });
  }

  // Boxes that need no scrolling are no stop on the way of the Tab key.
  const fit = () => {
    for (const box of all(".box")) {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      box.classList.toggle("scrolls", scrolls);
      if (scrolls) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  fit();
  addEventListener("resize", fit);
  for (const one of all("details")) one.addEventListener("toggle", fit);

  // Charts: switches for systems, and a cursor that follows the mouse, a finger or the slider's keys.
  for (const chart of all(".chart")) {
    const data = JSON.parse(chart.querySelector(".data").textContent);
    const slider = chart.querySelector(".slider");
    const readout = chart.querySelector(".readout");
    const views = all(".view", chart);
    const boxes = all(".keys input", chart);
    const number = (x) => {
      if (Math.abs(x) >= 999.5) return Math.round(x).toLocaleString("en");
      return String(Number(x.toPrecision(3)));
    };
    let current = views[0].dataset.view;

    const place = (scale, value) => {
      const [low, high, first, last, logs] = JSON.parse(scale);
      const f = logs ? Math.log : (x) => x;
      return first + ((f(value) - f(low)) / (f(high) - f(low))) * (last - first);
    };
    const refresh = () => {
      const k = Number(slider.value);
      const view = data.views[current];
      const on = boxes.map((box) => box.checked);
      for (const svg of all(`.view[data-view="${current}"] svg`, chart)) {
        const x = place(svg.dataset.x, view.at[k]);
        const line = svg.querySelector(".cursor");
        line.setAttribute("x1", x);
        line.setAttribute("x2", x);
        for (const group of all("g[data-series]", svg)) {
          const mean = view.mean[group.dataset.series][k];
          const dot = group.querySelector(".dot");
          dot.setAttribute("cx", mean === null ? -9 : x);
          dot.setAttribute("cy", mean === null ? -9 : place(svg.dataset.y, mean));
        }
      }
      for (const group of all("g[data-series]", chart)) group.classList.toggle("off", !on[group.dataset.series]);
      const values = data.labels.flatMap((label, series) => {
        const mean = view.mean[series][k];
        if (!on[series] || mean === null) return [];
        const sd = view.sd[series];
        return [`${label}: ${number(mean)}${sd ? ` ± ${number(sd[k])}` : ""}`];
      });
      const round = `Round ${view.at[k].toLocaleString("en")}`;
      readout.textContent = `${round}. ${values.join("; ") || "no system is switched on"}.`;
      slider.setAttribute("aria-valuetext", round);
    };
    const follow = (event) => {
      const svg = event.currentTarget;
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      const pixels = data.views[current].at.map((at) => Math.abs(place(svg.dataset.x, at) - x));
      slider.value = pixels.indexOf(Math.min(...pixels));
      refresh();
    };
    const show = (name) => {
      current = name;
      for (const view of views) view.hidden = view.dataset.view !== name;
      refresh();
    };

    for (const part of all(".scripted", chart)) part.hidden = false;
    for (const svg of all(".view svg", chart)) {
      svg.addEventListener("pointermove", follow);
      svg.addEventListener("pointerdown", follow);
    }
    for (const box of boxes) box.addEventListener("change", refresh);
    for (const choice of all(".choice input", chart)) choice.addEventListener("change", () => show(choice.value));
    slider.addEventListener("input", refresh);
    show(current);
  }

  // The command: a button that copies it, by the clipboard where a page may use it, else by selecting the text.
  for (const place of all(".command")) {
    const button = document.createElement("button");
    const said = document.createElement("span");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy the command";
    said.className = "copied";
    said.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      const code = place.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        said.textContent = "Copied.";
      } catch {
        getSelection().selectAllChildren(code);
        said.textContent = "Selected: press Ctrl+C to copy.";
      }
    });
    place.append(button, said);
  }

  addEventListener("beforeprint", () => all("details").forEach((one) => { one.open = true; }));
})();
