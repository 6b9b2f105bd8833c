// Which models are of low accuracy, as the figures tell them, and hidden at first: few of them squeeze all others.
"use strict";
const LowAccuracy = (() => {
  /**
   * Marks rows with isLow: published ones by type, or below the whole line where the type is not known; and with
   * isHidden, unless `isAskedFor(row)` or there would be none left.
   */
  function mark(rows, kinds, isAskedFor) {
    const lowest = rows.reduce((least, row) => (row.isFit ? Math.min(least, row.x.percent) : least), Infinity);
    const isBelow = (row) => row.kind === 0 && lowest < Infinity && row.x.percent < lowest;
    for (const row of rows) row.isLow = !row.isOwn && (kinds[row.kind].is_low || isBelow(row));
    const areAll = rows.every((row) => row.isLow);
    for (const row of rows) row.isHidden = row.isLow && !areAll && !isAskedFor(row);
  }

  return { mark };
})();
