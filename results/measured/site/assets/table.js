// Tables that sort, search, filter and can be walked by keyboard. Without this file they are plain tables.
//   <table class="data"> with one row of <th scope="col" data-kind="text|number"> in its head
//   <td data-value="97.3">   what to sort by, where it is not the text
//   <th data-filter="source"> a choice among the values of that column
"use strict";
(() => {
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const lower = (text) => text.toLocaleLowerCase("en");
  const FEWEST_ROWS = 10; // of a table that has tools
  let numTables = 0;

  /** The tables of the page or of a part of it, made ready; those that are ready stay as they are. */
  function enhanceTables(part = document) {
    for (const table of part.querySelectorAll("table.data:not([data-ready])")) {
      const heads = table.tHead?.rows.length === 1 ? [...table.tHead.rows[0].cells] : [];
      if (!heads.length || !table.tBodies.length) continue;
      table.dataset.ready = "";
      const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: lower(row.textContent) }));
      heads.forEach((head, column) => addSort(table, rows, head, column));
      addTools(table, rows, heads);
      addMovement(table);
    }
  }

  function keyOf(cell, isNumber) {
    const text = cell?.dataset.value ?? cell?.textContent.trim() ?? "";
    if (!isNumber) return text === "–" ? "" : text;
    return text === "" ? NaN : Number(text);
  }

  /** Puts a button into a column's head. Missing values are last in both directions; equal ones keep their order. */
  function addSort(table, rows, head, column) {
    const isNumber = head.dataset.kind === "number";
    const isMissing = isNumber ? Number.isNaN : (key) => key === "";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", head.getAttribute("aria-sort") ?? "none");
    button.addEventListener("click", () => {
      const now = head.getAttribute("aria-sort");
      const isDown = now === "none" ? isNumber : now === "ascending";
      for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      const sign = isDown ? -1 : 1;
      const compare = isNumber ? (a, b) => a - b : collator.compare;
      const keyed = rows.map((entry) => ({ entry, key: keyOf(entry.row.cells[column], isNumber) }));
      keyed.sort((a, b) => {
        const gone = isMissing(a.key) - isMissing(b.key);
        return gone || (isMissing(a.key) ? 0 : sign * compare(a.key, b.key));
      });
      table.tBodies[0].append(...keyed.map(({ entry }) => entry.row));
    });
  }

  /** Above a table: a search box, a choice for every column that asks for one, and how many rows are shown. */
  function addTools(table, rows, heads) {
    const filters = heads.flatMap((head, column) => (head.dataset.filter ? [{ head, column }] : []));
    if (rows.length < FEWEST_ROWS || table.classList.contains("heat")) return;
    const id = `table-${++numTables}`;
    const tools = document.createElement("div");
    tools.className = "tools";
    tools.setAttribute("role", "search");
    const search = document.createElement("input");
    search.type = "search";
    search.id = `${id}-search`;
    search.autocomplete = "off";
    search.spellcheck = false;
    tools.append(labelled(numTables === 1 ? "Search (press /)" : "Search", search));

    const chosen = filters.map(({ head, column }) => {
      const values = [...new Set(rows.map(({ row }) => row.cells[column].textContent.trim()))].sort(collator.compare);
      const select = document.createElement("select");
      select.append(new Option("all", ""), ...values.filter(Boolean).map((value) => new Option(value, value)));
      select.name = head.dataset.filter;
      tools.append(labelled(head.textContent.trim(), select));
      select.addEventListener("change", apply);
      return { select, column };
    });
    const count = document.createElement("p");
    count.className = "count";
    count.setAttribute("role", "status");
    tools.append(count);

    function apply() {
      const words = lower(search.value).split(/\s+/).filter(Boolean);
      const wanted = chosen.filter(({ select }) => select.value);
      let shown = 0;
      for (const { row, text } of rows) {
        const fits = words.every((word) => text.includes(word))
          && wanted.every(({ select, column }) => row.cells[column].textContent.trim() === select.value);
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = `${shown} of ${rows.length} rows`;
    }
    search.addEventListener("input", apply);
    search.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      search.value = "";
      apply();
    });
    apply();
    (table.closest(".scroll") ?? table).before(tools);
  }

  function labelled(words, control) {
    const label = document.createElement("label");
    label.append(words, control);
    return label;
  }

  /** Arrow keys, Home, End, Page Up and Page Down move between cells; Enter follows the link of a cell. */
  function addMovement(table) {
    const first = table.tBodies[0].rows[0]?.cells[0];
    if (first) first.tabIndex = 0;
    table.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td, th");
      if (!cell || event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select")) return;
      if (event.key === "Enter" && event.target === cell) {
        cell.querySelector("a")?.click();
        return;
      }
      const next = neighbour(table, cell, event.key);
      if (!next) return;
      event.preventDefault();
      for (const old of table.querySelectorAll("tbody [tabindex='0']")) old.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
  }

  function neighbour(table, cell, key) {
    const rows = [...table.rows].filter((row) => !row.hidden);
    const row = rows.indexOf(cell.parentElement);
    const column = cell.cellIndex;
    const [toRow, toColumn] = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      PageUp: [Math.max(row - 15, 0), column], PageDown: [Math.min(row + 15, rows.length - 1), column],
      Home: [row, 0], End: [row, rows[row].cells.length - 1],
    }[key] ?? [];
    const found = rows[toRow]?.cells[toColumn];
    return found?.querySelector("button.sort") ?? found;
  }

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.matches("input, select, textarea")) return;
    const search = document.querySelector("input[type='search']");
    if (!search) return;
    event.preventDefault();
    search.focus();
  });
  window.enhanceTables = enhanceTables;
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => enhanceTables());
  else enhanceTables();
})();
