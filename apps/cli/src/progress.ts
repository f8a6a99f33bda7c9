/** What a person sees while something takes longer than a second: one line on stderr, drawn anew. */
import stringWidth from 'string-width';
import { formatBytes } from './output.ts';

const APPEARS_AFTER_MS = 1000;
const REDRAW_MS = 100;
const BAR_WIDTH = 30;

export interface StatusLine {
  /** The line's text; undefined: what it showed at first. */
  set(text: string | undefined): void;
  /** Writes a line that stays, above the status line. */
  print(line: string): void;
  end(): void;
}

/** Nothing appears within the first second, nor where stderr is not a terminal (`print` works everywhere). */
export function statusLine(render: (elapsedMs: number) => string): StatusLine {
  const { stderr } = process;
  const start = performance.now();
  let text: string | undefined;
  let shown = false;
  const clear = () => {
    if (shown) stderr.write('\r\x1b[K');
    shown = false;
  };
  const draw = () => {
    const elapsed = performance.now() - start;
    if (elapsed < APPEARS_AFTER_MS) return;
    clear();
    stderr.write(clipped(`${text ?? render(elapsed)}`, stderr.columns ?? 80));
    shown = true;
  };
  const timer = stderr.isTTY ? setInterval(draw, REDRAW_MS) : undefined;
  return {
    set(next) {
      text = next;
    },
    print(line) {
      clear();
      stderr.write(`${line}\n`);
    },
    end() {
      clearInterval(timer);
      clear();
    },
  };
}

function clipped(text: string, columns: number): string {
  let out = text;
  while (stringWidth(out) >= columns) out = out.slice(0, -1);
  return out;
}

/** Shows `what` and the seconds while `work` goes on. */
export async function withStatus<T>(what: string, work: (line: StatusLine) => Promise<T>): Promise<T> {
  const line = statusLine((elapsedMs) => `${what} … ${(elapsedMs / 1000).toFixed(1)} s`);
  try {
    return await work(line);
  } finally {
    line.end();
  }
}

/** `[#####     ] 1.0 MiB/2.0 MiB`; without a total only what was done. */
export function bar(done: number, total: number | undefined): string {
  if (total === undefined || total === 0) return formatBytes(done);
  const filled = Math.min(BAR_WIDTH, Math.floor((done / total) * BAR_WIDTH));
  return `[${'#'.repeat(filled)}${' '.repeat(BAR_WIDTH - filled)}] ${formatBytes(done)}/${formatBytes(total)}`;
}

/** Counts bytes and shows them as a bar. */
export function transferStatus(label: string, total?: number): { add(bytes: number): void; end(): void } {
  let done = 0;
  const line = statusLine((elapsedMs) => {
    const rate = formatBytes(Math.round((done / elapsedMs) * 1000));
    return `${label} ${bar(done, total)} ${rate}/s`;
  });
  return {
    add(bytes) {
      done += bytes;
    },
    end: line.end,
  };
}
