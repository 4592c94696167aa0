// Draws the report's figures when they come into view, and keeps them in step with the reader's choices.
"use strict";
(() => {
  const { light, dark, figures } = JSON.parse(document.getElementById("data").textContent);
  const SHAPES = ["circle", "square", "triangle-up", "diamond", "triangle-down", "hexagon"];
  const root = document.documentElement;
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 44rem)");
  const coarse = matchMedia("(pointer: coarse)");
  const state = new Map(); // plot element: view, what is hidden, whether it is drawn

  const isDark = () => (root.dataset.theme || "auto") === "auto" ? prefersDark.matches : root.dataset.theme === "dark";
  const axisTitle = (axis) => axis.unit ? `${axis.label} [${axis.unit}]` : axis.label;
  const along = (axis, x) => axis.categories.length ? axis.categories[Math.round(x)] : x;

  function trace(figure, line, panel, index, show, intervals) {
    const colour = (isDark() ? dark : light)[line.slot % light.length];
    const name = line.reference ? `${line.name}, ns-2` : line.name;
    const suffix = panel ? String(panel + 1) : "";
    const unit = figure.y.unit ? ` ${figure.y.unit}` : "";
    const common = {
      name, legendgroup: name, showlegend: show, xaxis: `x${suffix}`, yaxis: `y${suffix}`, cliponaxis: false,
      x: line.points.map((p) => along(figure.x, p.x)), y: line.points.map((p) => p.y),
      meta: line.reference ? "reference" : "ours",
    };
    if (figure.kind === "time") {
      delete common.cliponaxis;
      return { ...common, type: "scatter", mode: "lines", line: { color: colour, width: 1.6, shape: "hv" },
        hovertemplate: `%{y:.5~g}${unit}` };
    }
    const spread = line.points.map((p) => p.ci);
    const known = intervals && spread.some((ci) => ci > 0);
    const error = { type: "data", array: spread, visible: known, thickness: 1.4, width: 3, color: `${colour}99` };
    const more = {
      error_y: error,
      customdata: line.points.map((p) => [p.ci > 0 ? ` ± ${Number(p.ci.toPrecision(2))}` : "", p.n]),
      hovertemplate: `%{y:.4~g}%{customdata[0]}${unit} (n = %{customdata[1]})`,
    };
    if (figure.kind === "bars") {
      const ink = isDark() ? "#e6e9ed" : "#1d232a";
      delete common.cliponaxis;
      return { ...common, ...more, type: "bar", offsetgroup: String(index), error_y: { ...error, color: ink },
        marker: { color: colour, opacity: line.reference ? 0.4 : 1 } };
    }
    const shape = SHAPES[line.slot % SHAPES.length];
    return { ...common, ...more, type: "scatter", mode: figure.kind === "scatter" ? "markers" : "lines+markers",
      line: { color: colour, width: line.reference ? 1.6 : 2.2, dash: line.reference ? "5px,4px" : "solid" },
      marker: { color: colour, size: line.reference ? 8 : 7.5, symbol: line.reference ? `${shape}-open` : shape,
        line: line.reference ? { width: 1.6, color: colour } : { width: 0 } } };
  }

  function stars(figure, panel, index, show) {
    const suffix = index ? String(index + 1) : "";
    const ink = isDark() ? "#ffffff" : "#1d232a";
    const paper = isDark() ? "#1b1f25" : "#ffffff";
    return { type: "scatter", mode: "markers", name: "stated in the paper", legendgroup: "stated", showlegend: show,
      xaxis: `x${suffix}`, yaxis: `y${suffix}`, meta: "stated",
      x: panel.stated.map((m) => along(figure.x, m.x)), y: panel.stated.map((m) => m.y), text: panel.stated.map((m) => m.label),
      marker: { symbol: "star", size: 13, color: ink, line: { width: 1, color: paper } },
      hovertemplate: "%{y:.4~g}: %{text}<extra>the paper</extra>" };
  }

  // The panels' places: three beside each other where there is room, one below the other where not.
  function domains(count) {
    const columns = narrow.matches ? 1 : Math.min(count, 3);
    const rows = Math.ceil(count / columns);
    const gap = { x: 0.07, y: 0.16 / Math.max(rows - 1, 1) };
    const width = (1 - gap.x * (columns - 1)) / columns;
    const height = (1 - gap.y * (rows - 1)) / rows;
    return Array.from({ length: count }, (_, i) => {
      const column = i % columns, row = Math.floor(i / columns);
      const left = column * (width + gap.x), top = 1 - row * (height + gap.y);
      return { x: [left, Math.min(left + width, 1)], y: [Math.max(top - height, 0), top], row, rows, column };
    });
  }

  // How far, in pixels, the pointer finds points: to the middle between two values of x, so that what is shown together is
  // of one x.
  function reach(figure, view, width) {
    const place = (x) => figure.x.log ? Math.log10(x) : x;
    const xs = [...new Set(view.panels.flatMap((p) => [...p.lines.flatMap((l) => l.points), ...p.stated]).map((p) => place(p.x)))].sort((a, b) => a - b);
    if (figure.kind === "time" || xs.length < 2) return 40;
    const gap = Math.min(...xs.slice(1).map((x, i) => x - xs[i]));
    const span = figure.x.categories.length ? xs.length : 1.12 * (xs[xs.length - 1] - xs[0]);
    return Math.max(4, Math.floor(0.49 * width * gap / span));
  }

  function layout(figure, view, width) {
    const darkNow = isDark();
    const ink = darkNow ? "#e6e9ed" : "#1d232a", soft = darkNow ? "#a3adb9" : "#59626e";
    const grid = darkNow ? "#333a43" : "#e3e6ea", sheet = darkNow ? "#1b1f25" : "#ffffff";
    const places = domains(view.panels.length);
    const rows = places.length ? places[0].rows : 1;
    const several = figure.kind !== "bars" && figure.kind !== "scatter";
    const names = new Set(view.panels.flatMap((p) => p.lines).map((l) => `${l.name}|${l.reference}`)).size + 1;
    const legendHeight = narrow.matches ? 26 * names : 28 * Math.ceil(names / 5);
    const result = {
      height: 100 + (narrow.matches ? 270 : rows > 1 ? 310 : 360) * rows + legendHeight,
      margin: { l: narrow.matches ? 52 : 64, r: 12, t: 38, b: 60 },
      paper_bgcolor: sheet, plot_bgcolor: sheet, font: { color: ink, size: 13, family: getComputedStyle(document.body).fontFamily },
      hovermode: several ? "x unified" : "closest", hoverdistance: several ? reach(figure, view, width / (narrow.matches ? 1 : Math.min(places.length, 3))) : 20, dragmode: coarse.matches ? false : "zoom", barmode: "group", bargap: 0.2,
      hoverlabel: { bgcolor: darkNow ? "#262c34" : "#ffffff", bordercolor: grid, font: { color: ink, size: 12.5 } },
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, xref: "paper", font: { size: 12.5 } },
      annotations: [], uirevision: `${figure.id}`,
    };
    view.panels.forEach((panel, i) => {
      const suffix = i ? String(i + 1) : "", place = places[i];
      const shared = { gridcolor: grid, linecolor: soft, zerolinecolor: grid, zerolinewidth: 1, tickfont: { color: soft }, automargin: true };
      const bottom = i + 3 >= view.panels.length || narrow.matches;
      result[`xaxis${suffix}`] = { ...shared, domain: place.x, anchor: `y${suffix}`, ticks: "outside", tickcolor: soft, showline: true,
        title: { text: bottom ? axisTitle(figure.x) : "", standoff: 8 }, type: figure.x.categories.length ? "category" : figure.x.log ? "log" : "linear",
        ...(figure.x.categories.length ? { categoryorder: "array", categoryarray: figure.x.categories } : {}),
        ...(i ? { matches: "x" } : {}), ticksuffix: "", hoverformat: ".5~g", unifiedhovertitle: { text: `${figure.x.label}: %{x}${figure.x.unit ? " " + figure.x.unit : ""}` } };
      result[`yaxis${suffix}`] = { ...shared, domain: place.y, anchor: `x${suffix}`, title: { text: place.column === 0 ? axisTitle(figure.y) : "", standoff: 8 },
        type: figure.y.log ? "log" : "linear", rangemode: figure.y.zero ? "tozero" : "normal", ...(i ? { matches: "y" } : {}) };
      if (panel.title) {
        result.annotations.push({ text: panel.title, showarrow: false, xref: "paper", yref: "paper", x: place.x[0], y: place.y[1], yanchor: "bottom", xanchor: "left", font: { size: 13.5, color: ink } });
      }
    });
    return result;
  }

  function draw(plot) {
    const own = state.get(plot), figure = figures[plot.dataset.figure], view = figure.views[own.view];
    const traces = [], seen = new Set();
    view.panels.forEach((panel, i) => {
      panel.lines.forEach((line, index) => {
        const key = `${line.name}|${line.reference}`;
        traces.push(trace(figure, line, i, index, !seen.has(key), !own.hidden.has("intervals")));
        seen.add(key);
      });
      if (panel.stated.length) {
        traces.push(stars(figure, panel, i, !seen.has("stated")));
        seen.add("stated");
      }
    });
    const shown = traces.filter((t) => !own.hidden.has(t.meta));
    Plotly.react(plot, shown, layout(figure, view, plot.clientWidth - 90), {
      responsive: true, displaylogo: false, showSendToCloud: false, plotlyServerURL: "", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { format: "svg", filename: figure.id },
    });
    own.drawn = true;
    plot.dataset.drawn = "true";
  }

  const redraw = () => state.forEach((own, plot) => { if (own.drawn) draw(plot); });
  const drawAll = () => state.forEach((own, plot) => { if (!own.drawn) draw(plot); });

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !state.get(entry.target).drawn) draw(entry.target);
    }
  }, { rootMargin: "500px 0px" });
  document.querySelectorAll(".plot").forEach((plot) => {
    state.set(plot, { view: 0, hidden: new Set(), drawn: false });
    near.observe(plot);
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const plot = button.closest(".figure")?.querySelector(".plot");
    if (button.dataset.view !== undefined) {
      button.parentElement.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      state.get(plot).view = Number(button.dataset.view);
      draw(plot);
    } else if (button.dataset.toggle) {
      const hidden = state.get(plot).hidden, what = button.dataset.toggle;
      if (!hidden.delete(what)) hidden.add(what);
      button.setAttribute("aria-pressed", String(!hidden.has(what)));
      draw(plot);
    } else if (button.dataset.themeSet) {
      setTheme(button.dataset.themeSet);
    } else if (button.dataset.copy) {
      copy(button);
    }
  });

  async function copy(button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      // Without leave to use the clipboard: mark the text, so that one key copies it.
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Marked";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  function setTheme(theme) {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    document.querySelectorAll("[data-theme-set]").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.themeSet === theme)));
    try { localStorage.setItem("manypath-theme", theme); } catch { /* a page from a file may have no storage */ }
    redraw();
  }
  let kept = null;
  try { kept = localStorage.getItem("manypath-theme"); } catch { /* as above */ }
  if (kept === "light" || kept === "dark") setTheme(kept);
  prefersDark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);

  // On paper everything is drawn, and in light colours.
  let before = null;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme || "auto";
    root.dataset.theme = "light";
    redraw();
    drawAll();
  });
  addEventListener("afterprint", () => {
    if (before === "auto" || before === null) delete root.dataset.theme; else root.dataset.theme = before;
    redraw();
  });

  // On a small screen the contents begin folded; on a large one they show where the reader is.
  if (matchMedia("(max-width: 60rem)").matches) document.querySelector(".toc details").open = false;
  const links = new Map([...document.querySelectorAll(".toc li a")].map((a) => [a.hash.slice(1), a]));
  const here = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const link = links.get(entry.target.id);
      if (!link) continue;
      if (entry.isIntersecting) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-20% 0px -60% 0px" });
  document.querySelectorAll(".experiment").forEach((e) => here.observe(e));
})();
