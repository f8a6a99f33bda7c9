/** Makes the directories of paths.ts, whatever the umask. */
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { CODE_DIRECTORY, LAUNCHER_DIRECTORY, RUN_DIRECTORY, SLOT_DIRECTORY } from './paths.ts';

const MODES = {
  [RUN_DIRECTORY]: 0o755,
  [SLOT_DIRECTORY]: 0o755,
  [LAUNCHER_DIRECTORY]: 0o700,
  [CODE_DIRECTORY]: 0o755,
  [`${CODE_DIRECTORY}/project`]: 0o755,
};

export async function makeRunDirectories(): Promise<void> {
  for (const [path, mode] of Object.entries(MODES)) {
    await mkdir(path, { recursive: true });
    await chmod(path, mode);
  }
  await writeFile(`${CODE_DIRECTORY}/node`, '', { flag: 'a', mode: 0o644 });
}
