// The scatter page: two settings, a scale, a line and a search, all of which are kept in the address after the #.
"use strict";
(() => {
  const data = window.TESTBED_POINTS;
  const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const $ = (id) => document.getElementById(id);
  const plot = $("plot");
  if (!data || !plot || !window.Plotly) return;

  $("explorer").hidden = false;
  const { entries, settings, kinds, sets, pairs } = data;
  const columns = data.columns.map((column) => new Map(column.entry.map((entry, i) => [entry, i])));
  const settingIndex = new Map(settings.name.map((name, index) => [name, index]));
  const lower = (text) => text.toLocaleLowerCase("en");
  const texts = entries.name.map((name, i) => lower(`${name} ${entries.source[i]} ${kinds[entries.kind[i]].words}`));
  const state = { x: data.start[0], y: data.start[1], scale: "logit", fit: sets[0].name, find: "", bars: true, low: false };
  let [view, order, position] = [null, [], -1];

  // ---- from two settings to rows, lines and rho

  function valueOf(setting, at) {
    const column = data.columns[setting];
    const n = Array.isArray(column.n) ? column.n[at] : column.n;
    return { percent: column.value[at], low: column.low[at], high: column.high[at], n };
  }

  /** The models that have both settings; those that have no place on the scale are counted. */
  function rowsOf() {
    const { place } = Fits.scales[state.scale];
    const [rows, lost] = [[], []];
    for (const [entry, xAt] of columns[state.x]) {
      const yAt = columns[state.y].get(entry);
      if (yAt === undefined) continue;
      const [x, y] = [valueOf(state.x, xAt), valueOf(state.y, yAt)];
      [x.place, y.place] = [place(x.percent), place(y.percent)];
      const row = { entry, x, y, name: entries.name[entry], kind: entries.kind[entry], isOwn: entries.own[entry] === 1, href: entries.href[entry] };
      (Number.isFinite(x.place) && Number.isFinite(y.place) ? rows : lost).push(row);
    }
    return { rows, lost };
  }

  function pairOf() {
    return pairs.find(({ x, y }) => x === state.x && y === state.y);
  }

  /** The models of a set that a line is fitted on; each once, from the source that has the most of them. */
  function membersOf(set, rows) {
    const pivot = pairOf()?.pivot_model;
    const members = new Set(set.members);
    const least = set.has_threshold ? settings.threshold[state.x] ?? -Infinity : -Infinity;
    const isPublishedOnly = set.is_yardstick && rows.some((row) => !row.isOwn);
    const isIn = (row) => members.has(row.entry) && !(isPublishedOnly && row.isOwn);
    const fitting = rows.filter((row) => isIn(row) && row.x.percent >= least && (!pivot || entries.model[row.entry] !== pivot));
    const sizes = new Map();
    for (const { entry } of fitting) sizes.set(entries.source[entry], (sizes.get(entries.source[entry]) ?? 0) + 1);
    const rank = ({ entry }) => [-sizes.get(entries.source[entry]), entries.source[entry], entries.name[entry]];
    const isBefore = (a, b) => { const at = a.findIndex((value, i) => value !== b[i]); return at >= 0 && a[at] < b[at]; };
    const best = new Map();
    for (const row of fitting) {
      const other = best.get(entries.model[row.entry]);
      if (!other || isBefore(rank(row), rank(other))) best.set(entries.model[row.entry], row);
    }
    return [...best.values()];
  }

  /** One line; or two that meet where the images of a data set were chosen by what a model gets wrong. */
  function linesOf(rows) {
    const set = sets.find(({ name }) => name === state.fit);
    if (!set) return [];
    const members = membersOf(set, rows);
    for (const row of members) row.isFit = true;
    const pivot = pairOf()?.pivot;
    const middle = pivot == null ? Infinity : Fits.scales[state.scale].place(pivot);
    const halves = [
      { rows: members.filter((row) => row.x.place < middle), from: -Infinity, to: middle },
      { rows: members.filter((row) => row.x.place >= middle), from: middle, to: Infinity },
    ];
    const parts = halves.every((half) => half.rows.length >= 3) ? halves : [{ rows: members, from: -Infinity, to: Infinity }];
    const lines = parts.map((part) => ({ ...part, fit: Fits.fit(part.rows, state.scale) }));
    return lines.every(({ fit }) => fit) ? lines : [];
  }

  /** The intervals of rho that the site has: of a known pair and its own line. */
  function intervals() {
    const known = state.fit === sets[0].name && state.scale === "logit" ? pairOf()?.rho : undefined;
    return new Map(known?.entry.map((entry, i) => [entry, { rhoLow: known.low[i], rhoHigh: known.high[i] }]));
  }

  function addRho(row, lines, known) {
    const one = lines.find(({ from, to }) => row.x.place >= from && row.x.place < to);
    if (!one) return;
    Object.assign(row, known.get(row.entry), {
      rho: row.y.percent - one.fit.at(row.x.place), numAsFar: one.fit.numAsFar(row), numFit: one.fit.n,
      isBeyond: row.x.place < lines[0].fit.low || row.x.place > lines.at(-1).fit.high,
    });
  }

  const sourceOf = (row) => (row.isOwn ? "measured here" : entries.source[row.entry]);

  // ---- drawing

  function box() {
    return { width: plot.clientWidth, height: plot.clientHeight };
  }

  async function draw() {
    document.body.dataset.state = "drawing";
    const { rows, lost } = rowsOf();
    const lines = linesOf(rows);
    const known = intervals();
    const names = { x: settings.name[state.x], y: settings.name[state.y] };
    for (const row of rows) {
      addRho(row, lines, known);
      row.words = PointWords.of(row, kinds[row.kind].words, sourceOf(row), names);
    }
    const words = lower(state.find).split(/\s+/).filter(Boolean);
    const found = words.length ? new Set(rows.flatMap(({ entry }) => (words.every((word) => texts[entry].includes(word)) ? [entry] : []))) : null;
    LowAccuracy.mark(rows, kinds, ({ entry }) => state.low || found?.has(entry));
    const titles = { x: `${names.x} (%)`, y: `${names.y} (%)` };
    view = { rows, lines, found, titles, scale: state.scale, hasBars: state.bars };
    order = [...rows].filter(({ entry, isHidden }) => !isHidden && (found === null || found.has(entry))).sort((a, b) => a.x.place - b.x.place);
    position = -1;
    $("point").replaceChildren();
    tell(rows, lost, lines, found);
    if ($("points").open) listPoints();
    if (rows.length) {
      const { traces, layout } = ScatterPlot.figure(view, kinds, box());
      await Plotly.react(plot, traces, layout, CONFIG);
      listen();
    } else Plotly.purge(plot);
    document.body.dataset.state = "drawn";
  }

  /** Plotly forgets its listeners when a plot is purged. */
  function listen() {
    plot.removeAllListeners();
    plot.on("plotly_hover", ({ points }) => {
      const row = rowAt(points[0]);
      if (row) show(row);
    });
    plot.on("plotly_relayout", renewTicks);
    plot.on("plotly_legendclick", ({ curveNumber }) => {
      if (!plot.data[curveNumber].isLow) return true;
      change({ low: !state.low }); // which also moves the axes to where they are
      return false;
    });
  }

  /** In words what the plot shows: for those who cannot see it, and for the numbers of the line. */
  function tell(rows, lost, lines, found) {
    const set = sets.find(({ name }) => name === state.fit);
    const parts = [`${rows.length} models have both settings.`];
    if (!rows.length) parts.push("Choose two settings that the same models were evaluated on.");
    for (const { fit, rows: fitted } of lines) {
      const symbol = state.scale === "linear" ? ["y", "x"] : [`${state.scale}(y)`, `${state.scale}(x)`];
      const sign = fit.intercept < 0 ? "−" : "+";
      parts.push(`Line through ${fitted.length} ${set.words}: ${symbol[0]} = ${fit.slope.toFixed(4).replace("-", "−")} ${symbol[1]} ${sign} ${Math.abs(fit.intercept).toFixed(4)}, r² = ${(fit.r ** 2).toFixed(3)}.`);
    }
    if (set && !lines.length && rows.length) parts.push(`No line: fewer than three ${set.words} have both.`);
    if (lost.length) parts.push(`${lost.length} left out: 0 and 100 % have no place on a ${state.scale} scale.`);
    const numHidden = rows.filter((row) => row.isHidden).length;
    if (numHidden) parts.push(`Not shown: ${numHidden} of low accuracy; their entry in the legend, or the box "low accuracy", shows them.`);
    if (found) parts.push(found.size ? `${found.size} found.` : `No model here fits "${state.find}".`);
    $("told").textContent = parts.join(" ");
    $("notes").textContent = notes(rows).join(" ");
  }

  /** What to bear in mind: as the site knows it of a known pair, or that results of several sources are mixed. */
  function notes(rows) {
    const pair = pairOf();
    if (pair?.notes) return pair.notes;
    const sources = new Set(rows.map(sourceOf));
    if (sources.size < 2) return [];
    const mixed = `Results of ${[...sources].join(", ")} are mixed here; their protocols and input sizes may differ.`;
    const isHeldAgainst = sources.has("measured here") && sets.find(({ name }) => name === state.fit)?.is_yardstick;
    return [mixed, ...(isHeldAgainst ? ["The line is of published models alone."] : [])];
  }

  /** A model's numbers under the plot, with the link to its page. */
  function show(row) {
    const link = document.createElement("a");
    link.href = row.href;
    link.textContent = row.name;
    const name = row.href ? link : document.createElement("strong");
    name.textContent = row.name;
    $("point").replaceChildren(name, ...row.words.flatMap((words) => [document.createElement("br"), words]));
  }

  function rowAt(point) {
    return plot.data[point.curveNumber].rows?.[point.pointNumber];
  }

  function step(by) {
    if (!order.length) return;
    position = (position + by + order.length) % order.length;
    const row = order[position];
    const curveNumber = plot.data.findIndex((trace) => trace.rows?.includes(row));
    Plotly.Fx.hover(plot, [{ curveNumber, pointNumber: plot.data[curveNumber].rows.indexOf(row) }]);
    show(row);
  }

  /** Puts round numbers on the axes for what is in sight, after zooming and resizing. */
  function renewTicks() {
    const update = {};
    for (const side of ["x", "y"]) {
      const name = `${side}axis`;
      const { tickvals, ticktext } = ScatterPlot.axisTicks(side, state.scale, plot.layout[name].range, box());
      if (`${tickvals}` === `${plot.layout[name].tickvals}`) continue;
      update[`${name}.tickvals`] = tickvals;
      update[`${name}.ticktext`] = ticktext;
    }
    if (Object.keys(update).length) Plotly.relayout(plot, update);
  }

  function listPoints() {
    const titles = { x: settings.name[state.x], y: settings.name[state.y] };
    PointsTable.show($("listed"), view.rows, titles, (row) => [kinds[row.kind].words, sourceOf(row)]);
  }

  // ---- choices and the address

  function readHash() {
    const asked = new URLSearchParams(location.hash.slice(1));
    for (const side of ["x", "y"]) state[side] = settingIndex.get(asked.get(side)) ?? state[side];
    if (Object.hasOwn(Fits.scales, asked.get("scale"))) state.scale = asked.get("scale");
    if (asked.has("fit")) state.fit = sets.some(({ name }) => name === asked.get("fit")) ? asked.get("fit") : "";
    if (asked.has("find")) state.find = asked.get("find");
    if (asked.has("bars")) state.bars = asked.get("bars") !== "0";
    state.low = asked.get("low") === "1";
  }

  function writeHash() {
    const words = { x: settings.name[state.x], y: settings.name[state.y], scale: state.scale, fit: state.fit || "none", bars: state.bars ? "1" : "0" };
    if (state.find) words.find = state.find;
    if (state.low) words.low = "1";
    history.replaceState(null, "", `#${new URLSearchParams(words)}`);
  }

  function showChoices() {
    boxes.x.set(state.x);
    boxes.y.set(state.y);
    $("scale").value = state.scale;
    $("fit").value = state.fit;
    $("find").value = state.find;
    $("bars").checked = state.bars;
    $("low").checked = state.low;
    $("pair").value = pairs.findIndex(({ x, y }) => x === state.x && y === state.y);
    if ($("pair").selectedIndex < 0) $("pair").selectedIndex = 0;
  }

  function change(changes) {
    Object.assign(state, changes);
    showChoices();
    writeHash();
    draw();
  }

  const options = settings.name.map((name, index) => ({ name, title: settings.title[index], note: `${data.columns[index].entry.length} models` }));
  const boxes = Object.fromEntries(["x", "y"].map((side) => [side, Combobox.create($(side), options, (index) => change({ [side]: index }))]));
  $("pair").append(new Option("other settings", "-1"), ...pairs.map(({ title }, index) => new Option(title, index)));
  $("fit").append(...sets.map(({ name, words }) => new Option(words, name)), new Option("no line", ""));
  $("pair").addEventListener("change", () => { const pair = pairs[$("pair").value]; if (pair) change({ x: pair.x, y: pair.y }); });
  $("swap").addEventListener("click", () => change({ x: state.y, y: state.x }));
  $("scale").addEventListener("change", () => change({ scale: $("scale").value }));
  $("fit").addEventListener("change", () => change({ fit: $("fit").value }));
  $("bars").addEventListener("change", () => change({ bars: $("bars").checked }));
  $("low").addEventListener("change", () => change({ low: $("low").checked }));
  let waiting = 0;
  $("find").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => change({ find: $("find").value }), 150);
  });
  $("points").addEventListener("toggle", () => { if ($("points").open) listPoints(); });
  addEventListener("hashchange", () => {
    readHash();
    showChoices();
    draw();
  });
  document.addEventListener("testbed-theme", draw);
  plot.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (by) {
      event.preventDefault();
      step(by);
    } else if (event.key === "Enter" && order[position]?.href) {
      location.href = order[position].href;
    }
  });

  readHash();
  showChoices();
  draw();
})();
