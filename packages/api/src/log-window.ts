/** Which part of a log a request asks for. */
import type { LogEntry, LogLevel } from '@aenv/orchestrator';

const SEVERITY: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 };

export interface LogWindow {
  /** Milliseconds since the epoch, inclusive in both directions. */
  cursor?: number;
  direction?: 'forward' | 'backward';
  /** This level and more severe ones. */
  level?: LogLevel;
  search?: string;
  limit: number;
}

export function atLeast(entries: LogEntry[], level: LogLevel | undefined): LogEntry[] {
  return level === undefined ? entries : entries.filter((entry) => SEVERITY[entry.level] >= SEVERITY[level]);
}

/** `entries` are oldest first; so is the result when it goes forward, while backward it starts with the newest. */
export function logWindow(entries: LogEntry[], { cursor, direction, level, search, limit }: LogWindow): LogEntry[] {
  const backward = direction === 'backward';
  const found = atLeast(entries, level).filter((entry) => {
    const inRange = cursor === undefined || (backward ? entry.timestamp <= cursor : entry.timestamp >= cursor);
    return inRange && (search === undefined || entry.message.includes(search));
  });
  return (backward ? found.toReversed() : found).slice(0, limit);
}
