/** Results on stdout: tables for people, JSON for programs. */
import { styleText } from 'node:util';
import stringWidth from 'string-width';

export type OutputFormat = 'table' | 'json';

export interface Column<Row> {
  title: string;
  value(row: Row): string;
  align?: 'right';
}

/** What was asked for, else tables on a terminal and JSON into a pipe. */
export function outputFormat(asked: OutputFormat | undefined): OutputFormat {
  return asked ?? (process.stdout.isTTY ? 'table' : 'json');
}

/** Control characters of foreign text would move the cursor or recolour the terminal. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, (character) => (character === '\t' ? ' ' : '�'));
}

function pad(text: string, width: number, align: 'right' | undefined): string {
  const filler = ' '.repeat(Math.max(0, width - stringWidth(text)));
  return align === 'right' ? filler + text : text + filler;
}

/** Columns without borders, as wide as their content. */
export function formatTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): string {
  const cells = rows.map((row) => columns.map((column) => printable(column.value(row))));
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...cells.map((row) => stringWidth(row[index] ?? ''))),
  );
  const line = (row: readonly string[]) =>
    columns
      .map(({ align }, index) => pad(row[index] ?? '', widths[index] ?? 0, align))
      .join('  ')
      .trimEnd();
  const header = styleText('bold', line(columns.map(({ title }) => title)), { stream: process.stdout });
  return [header, ...cells.map(line)].join('\n');
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, process.stdout.isTTY ? 2 : undefined)}\n`);
}

export function printRows<Row>(
  format: OutputFormat,
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  whenEmpty: string,
): void {
  if (format === 'json') printJson(rows);
  else if (rows.length === 0) process.stderr.write(`${whenEmpty}\n`);
  else process.stdout.write(`${formatTable(rows, columns)}\n`);
}

/** "3 s ago", "in 4 min"; `now` and `time` in milliseconds since the epoch. */
export function relativeTime(time: number, now = Date.now()): string {
  const seconds = Math.round(Math.abs(time - now) / 1000);
  const [amount, unit] =
    seconds < 100
      ? [seconds, 's']
      : seconds < 6000
        ? [Math.round(seconds / 60), 'min']
        : seconds < 48 * 3600
          ? [Math.round(seconds / 3600), 'h']
          : [Math.round(seconds / 86_400), 'd'];
  return time <= now ? `${amount} ${unit} ago` : `in ${amount} ${unit}`;
}

/** "512 B", "1.5 MiB". */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes < 1024 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${power === 0 ? bytes : (bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}
