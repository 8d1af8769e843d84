// Colors of slices: calm and muted, so that the causes of idle time are the only strong colors on
// the screen. A name gets its hue from its hash; lightness and chroma are fixed per theme, so no
// name is louder than another and text on all of them has the same contrast. Pure: runs in node.

export type Rgb = readonly [number, number, number];

/** OKLCH (L 0..1, C, hue in degrees) to sRGB 0..255, clipped to the gamut. */
export function oklchToRgb(lightness: number, chroma: number, hueDeg: number): Rgb {
  const h = (hueDeg * Math.PI) / 180;
  const a = chroma * Math.cos(h);
  const b = chroma * Math.sin(h);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encodeSrgb(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encodeSrgb(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encodeSrgb(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function encodeSrgb(linear: number): number {
  const v = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(1, Math.max(0, v)));
}

/** WCAG 2 contrast ratio of two sRGB colors. */
export function contrast(a: Rgb, b: Rgb): number {
  const [hi, lo] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (hi + 0.05) / (lo + 0.05);
}

function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map(v => {
    const c = v / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** 32-bit FNV-1a without the number at the end: "ProfilerStep#9" and "#10" share a color. */
export function hashName(name: string): number {
  let end = name.length;
  while (end > 1 && isDigit(name.charCodeAt(end - 1))) end--;
  let h = 0x811c9dc5;
  for (let i = 0; i < end; i++) h = Math.imul(h ^ name.charCodeAt(i), 0x01000193);
  // FNV's high bits are weak for short names: one more mix.
  h ^= h >>> 15;
  h = Math.imul(h, 0x2c1b3c6d);
  h ^= h >>> 13;
  return h >>> 0;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

/** Bytes R, G, B, A in memory order on a little-endian machine (all browsers' typed arrays). */
export function packRgb(rgb: Rgb): number {
  return (0xff000000 | (rgb[2] << 16) | (rgb[1] << 8) | rgb[0]) >>> 0;
}

/** "#rrggbb" or "rgb(r, g, b)" as the computed style gives it; undefined when neither. */
export function parseCssColor(text: string): Rgb | undefined {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
  if (hex) return [1, 2, 3].map(i => parseInt(hex[i] ?? '0', 16)) as unknown as Rgb;
  const rgb = /^rgba?\(\s*(\d+)[\s,]+(\d+)[\s,]+(\d+)/.exec(text.trim());
  if (rgb) return [Number(rgb[1]), Number(rgb[2]), Number(rgb[3])];
  return undefined;
}

export const cssRgb = (rgb: Rgb): string => `rgb(${rgb[0]}, ${rgb[1]}, ${rgb[2]})`;
