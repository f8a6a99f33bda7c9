/**
 * Paths below AENV_HOME that arrive from outside. The launcher is root and a VMM may own directories in there, so a path
 * is never trusted twice: it is opened without following links, and the kernel is asked what the descriptor really is.
 */
import { constants, readlinkSync } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, realpath, rm } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import { AenvError, isSystemError } from '@aenv/std';

const { O_APPEND, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;
const MAX_PATH = 4000;

/** The path under which the kernel reaches `name` in an open directory, whatever happens to the directory's own path. */
export function within(directory: FileHandle, name: string): string {
  return `/proc/self/fd/${directory.fd}/${name}`;
}

export class Home {
  /** Real path of AENV_HOME. */
  readonly root: string;
  readonly #given: string;

  private constructor(given: string, root: string) {
    this.#given = given;
    this.root = root;
  }

  /** Makes the directory when it is missing. VMM users may pass through it but not list it. */
  static async open(path: string): Promise<Home> {
    const given = resolve(path);
    await mkdir(given, { recursive: true });
    await chmod(given, 0o711);
    return new Home(given, await realpath(given));
  }

  /** The real path that `path` must have, when it is absolute, plain and below AENV_HOME; `bad_request` otherwise. */
  resolve(path: unknown, name: string): string {
    if (typeof path !== 'string' || path.length > MAX_PATH || path.includes('\0') || path !== resolve(path)) {
      throw new AenvError('bad_request', `${name} must be an absolute path without . and ..`);
    }
    for (const prefix of [this.root, this.#given]) {
      if (path.startsWith(`${prefix}/`)) return this.root + path.slice(prefix.length);
    }
    throw new AenvError('bad_request', `${name} must lie below ${this.root}`);
  }

  /** Opens an existing regular file that has this one name. */
  async openFile(path: string): Promise<FileHandle> {
    return this.#open(path, O_RDONLY | O_NONBLOCK);
  }

  /** Opens a file for reading and appending; a missing one is made with mode 0600. Its directory must exist. */
  async openLog(path: string): Promise<FileHandle> {
    await using directory = await this.openDirectory(dirname(path));
    return checkedFile(path, await openAt(within(directory, basename(path)), O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK));
  }

  async openDirectory(path: string): Promise<FileHandle> {
    return checked(path, await openAt(path, O_RDONLY | O_DIRECTORY));
  }

  /** Opens the directory `path`; what is missing on the way is made with mode 0711. */
  async makeDirectory(path: string): Promise<FileHandle> {
    let at = await open(this.root, O_RDONLY | O_DIRECTORY);
    for (const name of path.slice(this.root.length + 1).split('/')) {
      await using parent = at;
      at = await openOrMake(within(parent, name));
    }
    return checked(path, at);
  }

  /** Makes a new file for writing, mode 0600. One that is there under that name is removed first. */
  async createFile(path: string): Promise<FileHandle> {
    await using directory = await this.openDirectory(dirname(path));
    const name = within(directory, basename(path));
    await rm(name, { force: true });
    return checkedFile(path, await openAt(name, O_RDWR | O_CREAT | O_EXCL));
  }

  /** Gives the file to a user, mode 0600; a missing one is made, empty. Sealed files are refused. */
  async give(path: string, uid: number): Promise<void> {
    await using file = await this.openLog(path);
    const { mode } = await file.stat();
    if ((mode & 0o222) === 0) throw new AenvError('bad_request', `${path} is sealed`);
    await file.chmod(0o600);
    await file.chown(uid, uid);
  }

  /** Makes the file the launcher's own and readable for all, writable for nobody. */
  async seal(path: string): Promise<void> {
    await using file = await this.openFile(path);
    await file.chown(process.geteuid?.() ?? 0, process.getegid?.() ?? 0);
    await file.chmod(0o444);
  }

  async #open(path: string, flags: number): Promise<FileHandle> {
    return checkedFile(path, await openAt(path, flags));
  }
}

async function openAt(path: string, flags: number): Promise<FileHandle> {
  try {
    return await open(path, flags | O_NOFOLLOW, 0o600);
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) throw new AenvError('bad_request', `${path} does not exist`);
    if (isSystemError(error, 'ELOOP') || isSystemError(error, 'ENXIO') || isSystemError(error, 'ENOTDIR')) {
      throw new AenvError('bad_request', `${path} is not a plain file or directory`);
    }
    throw AenvError.from(error);
  }
}

async function openOrMake(path: string): Promise<FileHandle> {
  try {
    await mkdir(path, 0o711);
  } catch (error) {
    if (!isSystemError(error, 'EEXIST')) throw AenvError.from(error);
  }
  return openAt(path, O_RDONLY | O_DIRECTORY);
}

async function checked(path: string, handle: FileHandle): Promise<FileHandle> {
  if (readlinkSync(`/proc/self/fd/${handle.fd}`) === path) return handle;
  await handle.close();
  throw new AenvError('bad_request', `a symbolic link leads away from ${path}`);
}

async function checkedFile(path: string, handle: FileHandle): Promise<FileHandle> {
  await checked(path, handle);
  const stat = await handle.stat();
  // A second name could belong to a directory that somebody else controls.
  if (stat.isFile() && stat.nlink === 1) return handle;
  await handle.close();
  throw new AenvError('bad_request', `${path} is not a regular file with one name`);
}
