/** Medians, and the table that a run prints. */

export interface Result {
  name: string;
  /** What was measured, in `unit`. */
  value: number;
  /** The floor in the same unit, from the same run; absent for a limit that is absolute. */
  floor?: number;
  unit: 'ms' | 'MB/s' | 'MiB' | '×';
  /** The goal: for `ratio` value ÷ floor, for `value` the value itself. Absent for a figure that only informs. */
  goal?: { of: 'ratio' | 'value'; limit: number; kind: 'at most' | 'at least' };
}

export function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** Milliseconds that `work` takes. */
export async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> {
  const start = performance.now();
  const value = await work();
  return { ms: performance.now() - start, value };
}

/**
 * Medians of two ways to do the same. Their samples alternate, so that what else happens on the machine meets both.
 * The first sample of each warms up and does not count.
 */
export async function alternate(
  count: number,
  measured: () => Promise<number>,
  floor: () => Promise<number>,
): Promise<{ value: number; floor: number }> {
  const samples = { value: [] as number[], floor: [] as number[] };
  for (let round = 0; round <= count; round += 1) {
    const [floorSample, sample] = [await floor(), await measured()];
    if (round === 0) continue;
    samples.floor.push(floorSample);
    samples.value.push(sample);
  }
  return { value: median(samples.value), floor: median(samples.floor) };
}

const ratioOf = ({ value, floor }: Result): number | undefined => (floor === undefined ? undefined : value / floor);

export function isMet(result: Result): boolean {
  const { goal } = result;
  if (!goal) return true;
  const figure = goal.of === 'ratio' ? (ratioOf(result) ?? Number.NaN) : result.value;
  return goal.kind === 'at most' ? figure <= goal.limit : figure >= goal.limit;
}

const HEAD = ['what', 'aenv', 'floor', 'ratio', 'goal', ''];

/** The cells of each line, under `HEAD`. */
function cells(results: readonly Result[]): string[][] {
  return results.map((result) => {
    const ratio = ratioOf(result);
    const { goal } = result;
    return [
      result.name,
      `${result.value.toFixed(1)} ${result.unit}`,
      result.floor === undefined ? '' : `${result.floor.toFixed(1)} ${result.unit}`,
      ratio === undefined ? '' : ratio.toFixed(2),
      goal ? `${goal.kind} ${goal.limit}${goal.of === 'ratio' ? ' × floor' : ` ${result.unit}`}` : '',
      goal ? (isMet(result) ? 'met' : 'MISSED') : '',
    ];
  });
}

/** As a table of Markdown. */
export function markdown(results: readonly Result[]): string {
  const line = (row: string[]) => `| ${row.join(' | ')} |`;
  return [line(HEAD), line(HEAD.map(() => '---')), ...cells(results).map(line)].join('\n');
}

/** For a terminal. */
export function table(results: readonly Result[]): string {
  const rows = cells(results);
  const widths = HEAD.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)));
  const line = (row: string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  return [line(HEAD), ...rows.map(line)].join('\n');
}
