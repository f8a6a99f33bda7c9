#!/usr/bin/env node
/** The server's process: arguments, start, signals, exit codes. */
import { AenvError, type Logger } from '@aenv/std';
import { usage } from './config/help.ts';
import { formatAddress } from './config/kinds.ts';
import { loadConfig } from './config/load.ts';
import { createLogger } from './logging.ts';
import { openMachine } from './machine.ts';
import { type RunningServer, startServer } from './server.ts';
import { VERSION } from './version.ts';

/** Milliseconds that a stop may take before the process ends all the same; virtual machines are not affected. */
const STOP_DEADLINE_MS = 20_000;

const EXIT_FAILED = 1;
const EXIT_CONFIG = 2;

/** Tells a person what went wrong and what to do, and ends the process. */
function die(reason: unknown): never {
  const error = AenvError.from(reason);
  process.stderr.write(`aenv-server: ${error.message}\n`);
  if (error.remedy) process.stderr.write(`  ${error.remedy}\n`);
  // Without a code of ours it is a bug, and the trace is what a report needs.
  if (error.code === 'internal' && reason instanceof Error) process.stderr.write(`${reason.stack}\n`);
  process.exit(error.code === 'config_invalid' ? EXIT_CONFIG : EXIT_FAILED);
}

function stopOnSignals(server: RunningServer, logger: Logger): void {
  let stopping = false;
  const stop = async (signal: string): Promise<void> => {
    if (stopping) process.exit(EXIT_FAILED);
    stopping = true;
    logger.info({ signal }, 'stopping; virtual machines go on running');
    setTimeout(() => {
      logger.error({ afterMs: STOP_DEADLINE_MS }, 'did not stop in time');
      process.exit(EXIT_FAILED);
    }, STOP_DEADLINE_MS).unref();
    await server.close();
    logger.info({}, 'stopped');
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'])
    process.on(signal, () => {
      stop(signal).catch((error) => {
        logger.error({ error }, 'did not stop cleanly');
        process.exit(EXIT_FAILED);
      });
    });
}

/** A bug must not leave a server that half works: it ends, and the next start recovers what it did. */
function endOnBugs(logger: Logger): void {
  for (const event of ['uncaughtException', 'unhandledRejection'])
    process.on(event, (error) => {
      logger.error({ error, event }, 'a bug; the server ends, virtual machines go on running');
      process.exit(EXIT_FAILED);
    });
}

async function main(argv: string[]): Promise<void> {
  if (argv.includes('--help')) return void process.stdout.write(usage());
  if (argv.includes('--version')) return void process.stdout.write(`${VERSION}\n`);
  const { config, file, unknownVariables } = loadConfig(argv, process.env);
  if (process.getuid?.() !== 0)
    throw new AenvError('host_unsupported', 'the server makes network namespaces and must start as root', {
      remedy: 'Start it with sudo. Virtual machines run as users of their own, without privileges.',
    });
  const logger = createLogger(config.logLevel);
  for (const message of unknownVariables) logger.warn({}, message);
  if (file) logger.info({ file }, 'configuration read');
  endOnBugs(logger);
  const server = await startServer(config, logger, openMachine);
  stopOnSignals(server, logger);
  if (server.keys.created) process.stderr.write(`aenv-server: a new API key is in ${server.keys.file}\n`);
  process.stderr.write(`aenv-server: ready at http://${formatAddress(server.address)}\n`);
}

main(process.argv.slice(2)).catch(die);
