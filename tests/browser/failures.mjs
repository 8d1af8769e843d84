// What a failed step says: all of it where it failed, and once more in two lines at the end, for where few lines are kept.
const TEXT_MAX = 240;
Error.stackTraceLimit = 50; // the step stands below a driver's own frames

/** Lines of the test that led there, the step's first: `test_ranks.mjs:62 > 33`. */
function placeOf(stack) {
  const ofStep = stack.split(/^\s+at (?:async )?main \(/m)[0];
  const frames = [...ofStep.matchAll(/\/(test_\w+\.mjs):(\d+):\d+\)?$/gm)].reverse();
  const files = frames.map(([, file, line], i) => (frames[i - 1]?.[1] === file ? line : `${file}:${line}`));
  return files.join(' > ');
}

const oneLine = (text) => text.replace(/\u001b\[\d+m/g, '').split('\n').map((line) => line.trim()).filter(Boolean).join(' ');

/** Two lines: step and place, message. */
export function shortly(name, error) {
  const text = oneLine(error?.message ?? String(error));
  return `FAIL ${name} (${placeOf(error?.stack ?? '')})\n  ${text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}...` : text}`;
}

/** The whole message and the frames that are not of node or the driver. */
export function fully(error) {
  const lines = String(error?.stack ?? error).split('\n');
  return lines.filter((line) => !/^\s+at .*(node_modules|node:internal)/.test(line)).join('\n');
}
