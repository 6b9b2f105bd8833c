// The points of the scatter page as a table, for reading, sorting and copying.
"use strict";
const PointsTable = (() => {
  const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;

  function element(name, words = "", className = "") {
    const made = document.createElement(name);
    made.textContent = words;
    if (className) made.className = className;
    return made;
  }

  function nameCell(row) {
    const cell = element("th");
    cell.scope = "row";
    const name = element(row.href ? "a" : "span", row.name);
    if (row.href) name.href = row.href;
    cell.append(name);
    return cell;
  }

  function numberCell(value, form, low, high) {
    if (value === undefined) return element("td", "–", "n missing");
    const cell = element("td", form(value), "n");
    cell.dataset.value = value;
    if (low != null) cell.append(" ", element("span", `[${form(low)}, ${form(high)}]`, "ci"));
    return cell;
  }

  const percent = (value) => value.toFixed(2);

  function tableRow(row, words) {
    const made = document.createElement("tr");
    made.append(
      nameCell(row), ...words(row).map((text) => element("td", text)), numberCell(row.x.percent, percent, row.x.low, row.x.high),
      numberCell(row.y.percent, percent, row.y.low, row.y.high), numberCell(row.rho, signed, row.rhoLow, row.rhoHigh),
    );
    return made;
  }

  /** Fills a place with the table of rows, the most robust first. words(row): its training and its source. */
  function show(place, rows, titles, words) {
    const columns = [["model", "text"], ["training", "text", true], ["source", "text", true], [titles.x, "number"], [titles.y, "number"], ["ρ", "number"]];
    const head = document.createElement("tr");
    head.append(...columns.map(([title, kind, isFiltered]) => {
      const made = element("th", title);
      made.scope = "col";
      made.dataset.kind = kind;
      if (isFiltered) made.dataset.filter = title;
      return made;
    }));
    const ordered = [...rows].sort((a, b) => (b.rho ?? b.y.percent) - (a.rho ?? a.y.percent));
    const table = element("table", "", "data");
    table.createTHead().append(head);
    table.createTBody().append(...ordered.map((row) => tableRow(row, words)));
    const scroll = element("div", "", "scroll");
    scroll.append(table);
    place.replaceChildren(scroll);
    enhanceTables(place);
  }

  return { show, signed };
})();
