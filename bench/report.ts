/** docs/performance.md, as `make bench` writes it. */
import { markdown, type Result } from './statistics.ts';

export function performanceDocument(results: readonly Result[], machine: string): string {
  return `<!-- Written by \`make bench\`; do not edit. -->
# Performance

Measured by \`make bench\` on ${machine}, under QEMU TCG: every instruction of a guest is translated by software, so the
ratios say more than the milliseconds. The floor is bare QEMU, driven by hand through what is measured (\`bench/floor.ts\`),
or what its name says, in the same run. Samples of both alternate; each figure is a median.

${markdown(results)}
`;
}
