/** Where everything lies below AENV_HOME. The one place that knows the names. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

export interface Home {
  readonly root: string;
  readonly database: string;
  readonly imageCache: string;
  readonly imageDisks: string;
  readonly templates: string;
  /** Disk layers: the private one that a sandbox writes to, and those it was sealed to by snapshots. */
  readonly layers: string;
  readonly sandboxes: string;
  /** Memory of machines that boot: a file of zeros for each size. */
  readonly blankMemory: string;
  /** Run directories of VMs; short, because unix socket paths end at 107 bytes. */
  readonly vms: string;
}

export function homeLayout(root: string): Home {
  return {
    root,
    database: join(root, 'state.db'),
    imageCache: join(root, 'images', 'cache'),
    imageDisks: join(root, 'images', 'disks'),
    templates: join(root, 'templates'),
    layers: join(root, 'layers'),
    sandboxes: join(root, 'sandboxes'),
    blankMemory: join(root, 'blank-memory'),
    vms: join(root, 'vm'),
  };
}

/**
 * Creates the directories. A VMM runs as a user of its own and must reach its template's files by their path, but none
 * may list what else there is: 0711, and names that cannot be guessed.
 */
export async function prepareHome(home: Home): Promise<void> {
  for (const directory of [home.templates, home.layers, home.sandboxes, home.blankMemory, home.vms])
    await mkdir(directory, { recursive: true, mode: 0o711 });
}
