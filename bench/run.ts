/**
 * Ratios to a floor that drives bare QEMU through the same steps (bench/floor.ts), all from one run on one machine.
 * Prints a table, writes it to docs/performance.md and bench/results/latest.json, and exits with 1 when a goal is missed.
 * `node bench/run.ts NAME…` takes only these measurements, and writes nothing.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { createWorld } from '../tests/e2e/support/world.ts';
import { commandLineStart } from './command-line.ts';
import { fork, snapshot } from './copies.ts';
import { execRoundTrip, proxyThroughput } from './data-plane.ts';
import { density, overcommit } from './density.ts';
import { type Bench, openBench } from './environment.ts';
import { claim } from './pool.ts';
import { performanceDocument } from './report.ts';
import { createToOutput, pause, resumeToOutput, rounds } from './starts.ts';
import { isMet, type Result, table } from './statistics.ts';

const MEASUREMENTS: ((bench: Bench) => Promise<Result[]>)[] = [
  createToOutput,
  claim,
  resumeToOutput,
  pause,
  rounds,
  snapshot,
  fork,
  execRoundTrip,
  proxyThroughput,
  density,
  overcommit,
  commandLineStart,
];
/** More than any measurement wants at a time, whatever the machine has. */
const MAX_RUNNING = '300';

const wanted = process.argv.slice(2);
const world = await createWorld({ AENV_LOG_LEVEL: 'warn', AENV_SANDBOX_MAX_RUNNING: MAX_RUNNING });
const results: Result[] = [];
try {
  await using bench = await openBench(world);
  for (const measure of MEASUREMENTS) {
    if (wanted.length > 0 && !wanted.includes(measure.name)) continue;
    process.stderr.write(`measuring: ${measure.name}\n`);
    results.push(...(await measure(bench)));
  }
} finally {
  await world.destroy();
}

const machine = `${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB`;
process.stdout.write(`\n${table(results)}\n\n${machine}\n`);
if (wanted.length === 0) {
  const directory = join(import.meta.dirname, 'results');
  await mkdir(directory, { recursive: true });
  await writeFile(
    join(directory, 'latest.json'),
    `${JSON.stringify({ date: new Date(), machine, results }, null, 2)}\n`,
  );
  await writeFile(join(import.meta.dirname, '../docs/performance.md'), performanceDocument(results, machine));
}
process.exitCode = results.every(isMet) ? 0 : 1;
