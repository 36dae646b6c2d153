// Series as the "d" of one path. However long a run gets, a path has at most four points for each
// column of pixels, and what stands left of the last column does not change any more.

// `xs` rises. Of the points in one column the first, the lowest, the highest and the last are kept:
// the line looks exactly as it would with all of them.
export function linePath({ xs, ys }, toX, toY) {
  const parts = [];
  let column = null;
  for (let i = 0; i < xs.length; i += 1) {
    const x = toX(xs[i]);
    const y = toY(ys[i]);
    if (column === null || Math.floor(x) !== column.place) {
      flush(parts, column);
      column = { place: Math.floor(x), first: [x, y], low: [x, y], high: [x, y], last: [x, y] };
    } else {
      if (y < column.low[1]) column.low = [x, y];
      if (y > column.high[1]) column.high = [x, y];
      column.last = [x, y];
    }
  }
  flush(parts, column);
  return parts.length > 0 ? "M" + parts.join("L") : "";
}

function flush(parts, column) {
  if (column === null) return;
  const { first, low, high, last } = column;
  const inOrder = low[0] < high[0] ? [first, low, high, last] : [first, high, low, last];
  let before = "";
  for (const [x, y] of inOrder) {
    const point = x.toFixed(1) + " " + y.toFixed(1);
    if (point !== before) parts.push(point);
    before = point;
  }
}

// The same line with all that lies between it and zero.
export function areaPath(series, toX, toY) {
  const line = linePath(series, toX, toY);
  if (line === "") return "";
  const [first, last] = [toX(series.xs[0]), toX(series.xs.at(-1))].map((x) => x.toFixed(1));
  const zero = toY(0).toFixed(1);
  return line + "L" + last + " " + zero + "L" + first + " " + zero + "z";
}

// Bars of width `share` of one unit, from zero up.
export function barsPath({ xs, ys }, toX, toY, share) {
  return xs
    .map((x, i) => {
      const left = toX(x - share / 2);
      const top = toY(ys[i]);
      const size = [toX(x + share / 2) - left, toY(0) - top].map((n) => n.toFixed(1));
      return `M${left.toFixed(1)} ${top.toFixed(1)}h${size[0]}v${size[1]}h-${size[0]}z`;
    })
    .join("");
}
