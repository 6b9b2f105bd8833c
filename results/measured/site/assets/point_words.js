// What is said of one model on the scatter page: its type and source, its two accuracies, and how far it is off the line.
"use strict";
const PointWords = (() => {
  const counts = new Intl.NumberFormat("en");
  const { signed } = PointsTable;

  function valueWords(setting, value) {
    const interval = value.low === null ? "" : ` [${value.low.toFixed(2)}, ${value.high.toFixed(2)}]`;
    const images = value.n === null ? "" : `, n = ${counts.format(value.n)}`;
    return `${setting}: ${value.percent.toFixed(2)} %${interval}${images}`;
  }

  function rhoWords(row) {
    if (row.rho === undefined) return [];
    const interval = row.rhoLow == null ? "" : ` [${signed(row.rhoLow)}, ${signed(row.rhoHigh)}]`;
    const marks = [row.isFit ? "in the fit" : "", row.isBeyond ? "beyond the line's models" : ""].filter(Boolean).join("; ");
    return [
      `effective robustness ρ: ${signed(row.rho)} points${interval}${marks && ` (${marks})`}`,
      `${row.numAsFar} of the line's ${row.numFit} models are as far from it`,
    ];
  }

  /** The lines about a model. kind, source: in words; settings: { x, y }, their names. */
  function of(row, kind, source, settings) {
    return [`${kind}, ${source}`, valueWords(settings.x, row.x), valueWords(settings.y, row.y), ...rhoWords(row)];
  }

  return { of };
})();
