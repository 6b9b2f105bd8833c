// Scales of accuracies, the line of least squares on them, and its band: what testbed/metrics/effective.py computes.
// Accuracies come and go in percent. A place on a scale may be infinite: a logit has none for 0 and 100 %.
"use strict";
const Fits = (() => {
  const NUM_RESAMPLES = 1000;

  /** The share of a standard normal distribution below z. */
  function normalShare(z) {
    const far = Math.abs(z);
    const density = Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI);
    if (far > 5) { // continued fraction of the tail (Abramowitz & Stegun 26.2.14)
      let fraction = far;
      for (let k = 40; k > 0; k--) fraction = far + k / fraction;
      return z < 0 ? density / fraction : 1 - density / fraction;
    }
    let term = z;
    let sum = z; // power series (Abramowitz & Stegun 26.2.11)
    for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) sum += term *= z * z / k;
    return 0.5 + density * sum;
  }

  /** The z below which a share of a standard normal distribution lies, by Newton's method from its centre. */
  function normalPlace(share) {
    if (!(share > 0 && share < 1)) return share === 0 ? -Infinity : share === 1 ? Infinity : NaN;
    if (share > 0.5) return -normalPlace(1 - share);
    let z = 0;
    for (let i = 0; i < 60; i++) {
      const step = (normalShare(z) - share) * Math.sqrt(2 * Math.PI) * Math.exp(z * z / 2);
      z -= step;
      if (Math.abs(step) < 1e-12) break;
    }
    return z;
  }

  const scales = {
    linear: { place: (p) => p, percent: (u) => u },
    logit: { place: (p) => Math.log(p / (100 - p)), percent: (u) => 100 / (1 + Math.exp(-u)) },
    probit: { place: (p) => normalPlace(p / 100), percent: (u) => 100 * normalShare(u) },
  };

  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  /** Slope, intercept, r and n of the line through places u, v, or null where fewer than three models tell none. */
  function line(u, v) {
    const n = u.length;
    const [meanU, meanV] = [mean(u), mean(v)];
    let [uu, uv, vv] = [0, 0, 0];
    for (let i = 0; i < n; i++) {
      const [a, b] = [u[i] - meanU, v[i] - meanV];
      uu += a * a;
      uv += a * b;
      vv += b * b;
    }
    if (n < 3 || uu < 1e-12 * n) return null;
    const slope = uv / uu;
    return { slope, intercept: meanV - slope * meanU, r: vv > 0 ? uv / Math.sqrt(uu * vv) : 0, n };
  }

  /**
   * The line through rows [{ x: { place }, y: { place } }], or null: slope, intercept, r, n; the rows' places u and v, of
   * which `low` and `high` are the outermost on x; at(place): its height in percent; numAsFar(row): how many of its own
   * models are as far from it as a row.
   */
  function fit(rows, scaleName) {
    const u = rows.map((row) => row.x.place);
    const v = rows.map((row) => row.y.place);
    const found = line(u, v);
    if (!found) return null;
    const residual = (row) => row.y.place - found.intercept - found.slope * row.x.place;
    const distances = rows.map((row) => Math.abs(residual(row)));
    return {
      ...found, u, v, low: Math.min(...u), high: Math.max(...u),
      at: (place) => scales[scaleName].percent(found.intercept + found.slope * place),
      numAsFar: (row) => distances.filter((distance) => distance >= Math.abs(residual(row)) - 1e-12).length,
    };
  }

  /** Random whole numbers below a bound, the same ones each time (xorshift32: Marsaglia, 2003). */
  function randomBelow(seed) {
    let state = seed;
    return (bound) => {
      state ^= state << 13; state ^= state >>> 17; state ^= state << 5;
      return Math.floor((state >>> 0) / 4294967296 * bound);
    };
  }

  /** Bounds at the places `at` within which 95 % of the lines through resampled models lie. */
  function band(u, v, at) {
    const draw = randomBelow(720257663);
    const lines = [];
    for (let k = 0; k < NUM_RESAMPLES; k++) {
      const [a, b] = [[], []];
      for (let i = 0; i < u.length; i++) {
        const j = draw(u.length);
        a.push(u[j]); b.push(v[j]);
      }
      const found = line(a, b);
      if (found) lines.push(found);
    }
    const outward = 0.025 * (lines.length - 1);
    const bounds = at.map((place) => {
      const values = lines.map(({ slope, intercept }) => intercept + slope * place).sort((a, b) => a - b);
      return [values[Math.floor(outward)], values[Math.ceil(lines.length - 1 - outward)]];
    });
    return { low: bounds.map(([low]) => low), high: bounds.map(([, high]) => high) };
  }

  const ROUND = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99];

  /** Round percentages between two places that stand at least `gap` apart there, with their places. */
  function ticks(scale, low, high, gap) {
    const { place, percent } = scales[scale];
    const [from, to] = [percent(low), percent(high)];
    const span = to - from;
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20].find((size) => size / span * (high - low) >= gap) ?? 50;
    const even = [];
    for (let k = Math.ceil(from / step); k * step <= to + 1e-9; k++) even.push(Number((k * step).toPrecision(10)));
    const isCurved = scale !== "linear" && (from < 12 || to > 88) && span > 15;
    const candidates = isCurved ? ROUND.filter((value) => value >= from && value <= to) : even;
    const kept = [];
    const order = [...candidates].sort((a, b) => weight(b) - weight(a) || a - b);
    for (const value of order) {
      if (kept.every((other) => Math.abs(place(other) - place(value)) >= gap)) kept.push(value);
    }
    kept.sort((a, b) => a - b);
    return { tickvals: kept.map(place), ticktext: kept.map((value) => `${value}`) };
  }

  /** Which of two round numbers to keep where both do not fit: the middle, then powers of ten from either end. */
  function weight(value) {
    const end = Math.min(value, 100 - value);
    if (end === 50) return 3;
    const digit = Number(end.toExponential().split("e")[0]);
    return Math.abs(digit - 1) < 1e-6 ? 2 : Math.abs(digit - 5) < 1e-6 ? 1 : 0;
  }

  return { scales, line, fit, band, ticks };
})();
