// A map of the plane: probabilities as colours on a canvas, and the line where they are one half.

const channels = (style, name) => style.getPropertyValue(name).match(/[\d.]+/g).slice(0, 3).map(Number);
const mix = (one, other, share) => one.map((value, i) => value + share * (other[i] - value));

/** Paint probabilities (rows from the lower edge up), or the standard deviations where they are given. */
export function paintMap(canvas, box, cells, probability, std) {
  const style = getComputedStyle(document.documentElement);
  const [neutral, blue, orange, violet] = ["--neutral", "--blue", "--orange", "--violet"].map((name) => channels(style, name));
  const colour = (i) => {
    if (std) return mix(neutral, violet, Math.min(std[i] / 0.35, 1) * 0.85); // 0.35: more is rare
    const certainty = 2 * probability[i] - 1;
    return mix(neutral, certainty > 0 ? orange : blue, Math.abs(certainty) * 0.62);
  };
  const small = new OffscreenCanvas(cells, cells);
  const context = small.getContext("2d");
  const image = context.createImageData(cells, cells);
  for (let row = 0; row < cells; row += 1) {
    for (let column = 0; column < cells; column += 1) {
      image.data.set([...colour((cells - 1 - row) * cells + column), 255], 4 * (row * cells + column));
    }
  }
  context.putImageData(image, 0, 0);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const offset = parseFloat(getComputedStyle(canvas.parentElement).paddingLeft);
  Object.assign(canvas.style, { left: `${box.left + offset}px`, top: `${box.top + offset}px`, width: `${box.width}px`, height: `${box.height}px` });
  const target = canvas.getContext("2d");
  target.imageSmoothingQuality = "high";
  // The values are those at the corners of the map: half a cell on every side lies outside.
  target.drawImage(small, 0.5, 0.5, cells - 1, cells - 1, 0, 0, canvas.width, canvas.height);
}

/** Segments along which the probability is one half: the cells it runs through, cut straight. */
export function borderLine(probability, cells, [low, high]) {
  const at = (index) => low + ((high - low) * index) / (cells - 1);
  const segments = [];
  for (let row = 0; row < cells - 1; row += 1) {
    for (let column = 0; column < cells - 1; column += 1) {
      const corners = [[column, row], [column + 1, row], [column + 1, row + 1], [column, row + 1]];
      const values = corners.map(([x, y]) => probability[y * cells + x] - 0.5);
      const cuts = [];
      for (let side = 0; side < 4; side += 1) {
        const [a, b] = [values[side], values[(side + 1) % 4]];
        if (a > 0 === b > 0) continue;
        const [from, to] = [corners[side], corners[(side + 1) % 4]];
        const share = a / (a - b);
        cuts.push([at(from[0] + share * (to[0] - from[0])), at(from[1] + share * (to[1] - from[1]))]);
      }
      for (let i = 0; i + 1 < cuts.length; i += 2) segments.push([cuts[i], cuts[i + 1]]);
    }
  }
  return segments;
}
