/** Where the launcher keeps what must not survive a reboot. All of it belongs to root. */
import { createHash } from 'node:crypto';

export const RUN_DIRECTORY = '/run/aenv';
/** Of the machine, not of one AENV_HOME: slots are unique among all servers on it. */
export const SLOT_DIRECTORY = `${RUN_DIRECTORY}/slots`;
/** Directory with mode 0700 that holds the sockets and locks of launchers. */
export const LAUNCHER_DIRECTORY = `${RUN_DIRECTORY}/launchers`;
/** An empty directory; jobs see the program's own files there, in a mount namespace of theirs. */
export const CODE_DIRECTORY = `${RUN_DIRECTORY}/code`;

/** Short name of one AENV_HOME (its real path), for file names of bounded length. */
export function homeKey(root: string): string {
  return createHash('sha256').update(root).digest('hex').slice(0, 16);
}

/** Socket of the launcher of one AENV_HOME; far below the 107 bytes that a socket address holds. */
export function launcherSocket(root: string): string {
  return `${LAUNCHER_DIRECTORY}/${homeKey(root)}.sock`;
}

/** Records of the VMs of one AENV_HOME. */
export function vmDirectory(root: string): string {
  return `${RUN_DIRECTORY}/vms/${homeKey(root)}`;
}
