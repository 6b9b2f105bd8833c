// What plotly is asked to draw: models as points, the lines through some of them with their bands, and honest ticks.
"use strict";
const ScatterPlot = (() => {
  const { scales, ticks } = Fits;
  const NUM_STEPS = 80;
  const LONGEST_LABEL = 60; // letters
  const LONGEST_LINE = 100;
  const ENDS = [0.005, 99.995]; // where an interval ends on a scale that has no place for 0 and 100 %
  const LETTER = 9; // pixels
  const GAPS = { x: 42, y: 24 }; // pixels between ticks
  const AROUND = { x: 90, y: 150 }; // pixels that are not the plot's own

  /** A name as plotly shows it: as text, whatever tags or formulas it has, and not wider than a small screen. */
  function plain(name, longest = LONGEST_LABEL) {
    const letters = [...name.replace(/\s+/g, " ")];
    const half = Math.floor(longest / 2);
    const short = letters.length > longest ? [...letters.slice(0, half), "…", ...letters.slice(-half)] : letters;
    return short.join("").replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("$", "&#36;");
  }

  /** A colour of the style sheet, [red, green, blue] as the browser computes it in the present theme. */
  function computed(name) {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color.match(/\d+/g).slice(0, 3);
    probe.remove();
    return found;
  }
  const rgba = (parts, alpha = 1) => `rgba(${parts.join(",")},${alpha})`;

  function span(places) {
    const [low, high] = [Math.min(...places), Math.max(...places)];
    const margin = 0.05 * (high - low) || 0.5;
    return [low - margin, high + margin];
  }

  /** Distances from places to the ends of their intervals, as plotly wants error bars. */
  function bars(rows, axis, scale, color) {
    const end = (percent) => scale.place(scale === scales.linear ? percent : Math.min(Math.max(percent, ENDS[0]), ENDS[1]));
    const to = (name) => rows.map(({ [axis]: value }) => (value[name] === null ? 0 : Math.abs(end(value[name]) - value.place)));
    return { type: "data", symmetric: false, thickness: 1, width: 0, color, array: to("high"), arrayminus: to("low") };
  }

  function hover(row) {
    return [`<b>${plain(row.name)}</b>`, ...row.words.map((words) => plain(words, LONGEST_LINE))].join("<br>");
  }

  function points(rows) {
    return {
      type: "scatter", rows, x: rows.map((row) => row.x.place), y: rows.map((row) => row.y.place), hovertext: rows.map(hover),
      hoverinfo: "text",
    };
  }

  function kindTraces(view, kinds, look) {
    return kinds.flatMap((kind, index) => {
      const ofKind = view.rows.filter((row) => row.kind === index);
      const parts = [false, true].map((isLow) => ofKind.filter((row) => row.isLow === isLow));
      return parts.filter((rows) => rows.length).map((rows) => kindTrace(view, kind, rows, look));
    });
  }

  /** Models of one kind, all of low accuracy or none; those that are hidden stand in the legend alone. */
  function kindTrace(view, kind, all, look) {
    const [scale, { isLow }] = [scales[view.scale], all[0]];
    const shown = all.filter((row) => !row.isHidden);
    const rows = shown.length ? shown : all;
    const isFaint = (row) => view.found !== null && !view.found.has(row.entry);
    const parts = kind.color.match(/[0-9a-f]{2}/gi).map((digits) => parseInt(digits, 16));
    const color = rgba(parts, 0.4);
    const errors = view.hasBars && view.found === null
      ? { error_x: bars(rows, "x", scale, color), error_y: bars(rows, "y", scale, color) } : {};
    const words = isLow && !kind.is_low ? `${kind.words}, below the line` : kind.words;
    return {
      ...points(rows), mode: "markers", name: `${words} (${all.length})`, ...errors, isLow, visible: shown.length ? true : "legendonly",
      marker: {
        color: rgba(parts), symbol: kind.symbol, size: 8, opacity: rows.map((row) => (isFaint(row) ? 0.15 : 1)),
        line: { color: rows.map((row) => rgba(row.isOwn ? look.ink : look.paper)), width: rows.map((row) => (row.isOwn ? 2 : 0.6)) },
      },
    };
  }

  /** For rows from the left the sides on which their names are free of other names; "" where there is no such side. */
  function labelSides(rows, spans, box) {
    const pixels = { x: box.width - AROUND.x, y: box.height - AROUND.y };
    const pixel = (row, side) => (row[side].place - spans[side][0]) / (spans[side][1] - spans[side][0]) * pixels[side];
    const taken = [];
    return rows.map((row) => {
      const width = LETTER * 0.8 * Math.min([...row.name].length, LONGEST_LABEL);
      const [x, y] = [pixel(row, "x"), pixel(row, "y")];
      const boxes = {
        "middle left": [x - 9 - width, y - 8], "middle right": [x + 9, y - 8], "top center": [x - width / 2, y + 9], "bottom center": [x - width / 2, y - 25],
      };
      const isFree = ([left, low]) => left >= 0 && left + width <= pixels.x
        && taken.every((other) => left + width < other[0] || left > other[0] + other[2] || low + 15 < other[1] || low > other[1] + 15);
      const side = Object.keys(boxes).find((name) => isFree(boxes[name]));
      if (side) taken.push([...boxes[side], width]);
      return side ?? "";
    });
  }

  /** The models that were searched for, ringed and with intervals, and with their names where these do not overlap. */
  function foundTrace(view, spans, box, look) {
    const rows = view.found === null ? [] : view.rows.filter((row) => view.found.has(row.entry)).sort((a, b) => a.x.place - b.x.place);
    if (!rows.length) return [];
    const [scale, ink] = [scales[view.scale], rgba(look.ink)];
    const sides = labelSides(rows, spans, box);
    return [{
      ...points(rows), mode: "markers+text", name: `found (${rows.length})`, text: rows.map((row, i) => (sides[i] ? plain(row.name) : "")),
      textposition: sides.map((side) => side || "top center"), textfont: { color: ink, size: 12 },
      marker: { color: "rgba(0,0,0,0)", symbol: "circle", size: 14, line: { color: ink, width: 2 } },
      ...(view.hasBars ? { error_x: bars(rows, "x", scale, ink), error_y: bars(rows, "y", scale, ink) } : {}),
    }];
  }

  const steps = (from, to) => Array.from({ length: NUM_STEPS + 1 }, (_, k) => from + (to - from) * k / NUM_STEPS);

  const bare = { type: "scatter", mode: "lines", hoverinfo: "skip" };

  /** The band of a line, which is drawn under the models. */
  function bandTraces(one, spans, look, isFirst) {
    const at = steps(Math.max(spans.x[0], one.from), Math.min(spans.x[1], one.to));
    const band = Fits.band(one.fit.u, one.fit.v, at);
    const fill = { fill: "tonexty", fillcolor: rgba(look.muted, 0.25), name: "95 % band of the line", showlegend: isFirst };
    return [{ ...bare, x: at, y: band.low, line: { width: 0 }, showlegend: false }, { ...bare, x: at, y: band.high, line: { width: 0 }, ...fill }];
  }

  /** A line over the models: full where its own are, dashed beyond. */
  function lineTraces(one, spans, look, isFirst) {
    const ends = [Math.max(spans.x[0], one.from), Math.min(spans.x[1], one.to)];
    const draw = (x, line) => ({ ...bare, x, y: x.map((place) => one.fit.intercept + one.fit.slope * place), line: { color: rgba(look.ink), ...line } });
    return [
      { ...draw(ends, { width: 1, dash: "dash" }), showlegend: false },
      { ...draw([one.fit.low, one.fit.high], { width: 2 }), name: "fitted line (dashed beyond its models)", showlegend: isFirst },
    ];
  }

  function equalTrace(spans, look) {
    const [low, high] = [Math.max(spans.x[0], spans.y[0]), Math.min(spans.x[1], spans.y[1])];
    if (low >= high) return [];
    const line = { color: rgba(look.muted), width: 1.5, dash: "dot" };
    return [{ ...bare, x: [low, high], y: [low, high], name: "equal accuracy", line }];
  }

  /** The ticks of an axis that shows this span on so many pixels. */
  function axisTicks(side, scale, [low, high], box) {
    const pixels = Math.max(100, (side === "x" ? box.width : box.height) - AROUND[side]);
    return ticks(scale, low, high, GAPS[side] / pixels * (high - low));
  }

  function axis(side, view, range, box, look) {
    const longest = Math.floor((side === "x" ? box.width - AROUND.x : box.height - AROUND.y) / LETTER);
    return {
      title: { text: plain(view.titles[side], longest), standoff: 8 }, range, zeroline: false, automargin: true, ticks: "outside",
      gridcolor: rgba(look.line), linecolor: rgba(look.muted), tickcolor: rgba(look.muted), ...axisTicks(side, view.scale, range, box),
    };
  }

  /**
   * Traces and layout for plotly. view: { rows, lines: [{ fit, from, to }], scale, titles: { x, y }, hasBars,
   * found: a Set of entries or null }. A trace of models has them as `rows`, in its own order.
   */
  function figure(view, kinds, box) {
    const look = Object.fromEntries(["ink", "paper", "muted", "line"].map((name) => [name, computed(name)]));
    const spans = Object.fromEntries(["x", "y"].map((side) => [side, span(view.rows.filter((row) => !row.isHidden).map((row) => row[side].place))]));
    const [ink, paper] = [rgba(look.ink), rgba(look.paper)];
    return {
      traces: [
        ...view.lines.flatMap((one, index) => bandTraces(one, spans, look, index === 0)), ...equalTrace(spans, look),
        ...kindTraces(view, kinds, look), ...view.lines.flatMap((one, index) => lineTraces(one, spans, look, index === 0)),
        ...foundTrace(view, spans, box, look),
      ],
      layout: {
        paper_bgcolor: paper, plot_bgcolor: paper, font: { color: ink, size: 13, family: "system-ui, sans-serif" },
        xaxis: axis("x", view, spans.x, box, look), yaxis: axis("y", view, spans.y, box, look),
        legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", font: { size: 12 }, traceorder: "normal" },
        margin: { l: 56, r: box.width < 600 ? 16 : 44, t: 16, b: 48 }, modebar: { orientation: "v" }, hovermode: "closest", dragmode: box.width < 600 ? false : "zoom",
        hoverlabel: { align: "left", bgcolor: paper, bordercolor: rgba(look.muted), font: { color: ink, size: 13 } },
      },
    };
  }

  return { figure, axisTicks };
})();
