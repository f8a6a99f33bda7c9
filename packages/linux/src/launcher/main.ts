/** The launcher as a process: `node main.ts HOME SOCKET`. Its messages go to stderr, one JSON object a line. */
import type { Logger } from '@aenv/std';
import { startLauncher } from './server.ts';

function jsonLogger(bindings: object = {}): Logger {
  const write = (level: number) => (fields: object, message: string) => {
    const line = { level, time: Date.now(), name: 'launcher', ...bindings, ...fields, msg: message };
    process.stderr.write(`${JSON.stringify(line, errorText)}\n`);
  };
  return {
    debug() {},
    info: write(30),
    warn: write(40),
    error: write(50),
    child: (more) => jsonLogger({ ...bindings, ...more }),
  };
}

function errorText(_key: string, value: unknown): unknown {
  return value instanceof Error ? { type: value.name, message: value.message, stack: value.stack } : value;
}

const [home = '', socketPath = ''] = process.argv.slice(2);
const logger = jsonLogger();
// The server may be gone with the pipe that it read our messages from.
process.stderr.on('error', () => {});
try {
  const launcher = await startLauncher({ home, socketPath, logger });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => void launcher.close().then(() => process.exit(0)));
  }
  await launcher.idle;
  process.exit(0);
} catch (error) {
  logger.error({ err: error }, 'the launcher could not start');
  process.exit(1);
}
