/**
 * Ratios to a floor that drives bare QEMU through the same steps (bench/floor.ts), all from one run on one machine.
 * Prints a table, writes bench/results/latest.json, and exits with 1 when a goal is missed.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { createWorld } from '../tests/e2e/support/world.ts';
import { commandLineStart } from './command-line.ts';
import { execRoundTrip, proxyThroughput } from './data-plane.ts';
import { density } from './density.ts';
import { openBench } from './environment.ts';
import { createToOutput, pause, resumeToOutput } from './starts.ts';
import { isMet, type Result, table } from './statistics.ts';

const world = await createWorld({ AENV_LOG_LEVEL: 'warn' });
const results: Result[] = [];
try {
  await using bench = await openBench(world);
  for (const measure of [
    createToOutput,
    resumeToOutput,
    pause,
    execRoundTrip,
    proxyThroughput,
    density,
    commandLineStart,
  ]) {
    process.stderr.write(`measuring: ${measure.name}\n`);
    results.push(...(await measure(bench)));
  }
} finally {
  await world.destroy();
}

const machine = `${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
process.stdout.write(`\n${table(results)}\n\n${machine}\n`);
const directory = join(import.meta.dirname, 'results');
await mkdir(directory, { recursive: true });
await writeFile(join(directory, 'latest.json'), `${JSON.stringify({ date: new Date(), machine, results }, null, 2)}\n`);
process.exitCode = results.every(isMet) ? 0 : 1;
