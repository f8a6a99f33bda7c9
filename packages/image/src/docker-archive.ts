/**
 * An image in a file made by `docker save` (or `skopeo copy … docker-archive:`): a tar with `manifest.json`, which names
 * the configuration and the layers. The layers stay in the file and are read from there.
 * Source: moby image/spec v1.2 “Combined Image JSON + Filesystem Changeset Format”.
 */
import { open, rm, stat } from 'node:fs/promises';
import { posix } from 'node:path';
import { AenvError } from '@aenv/std';
import { digestOf } from './digest.ts';
import { isCompressed, openLayer } from './layer-stream.ts';
import { MAX_DOCUMENT_BYTES, parseConfig } from './manifest.ts';
import { fileError } from './oci-layout.ts';
import { ownedName } from './owned-files.ts';
import { type ArchiveReference, formatReference, parseReference } from './reference.ts';
import type { ImageHandle, LayerSource, StoredBlob } from './source.ts';
import { shownName } from './tar/entry.ts';
import { readTar } from './tar/reader.ts';

const MAX_MEMBERS = 100_000;
const MAX_LINKS = 16;

interface Member {
  offset: number;
  size: number;
  /** Target of a symlink or hard link; both stand for another member. */
  link?: string;
}

interface ManifestItem {
  Config: string;
  RepoTags: string[];
  Layers: string[];
}

/** The image; disposing of it removes what was unpacked from a compressed archive into `scratchPath` + a suffix. */
export async function openArchive(
  reference: ArchiveReference,
  scratchPath: string,
): Promise<AsyncDisposable & { image: ImageHandle }> {
  const what = `the archive ${reference.file}`;
  const { path, isTemporary } = await plainArchive(reference.file, scratchPath);
  const dispose = async () => {
    if (isTemporary) await rm(path, { force: true });
  };
  try {
    const archive = await Archive.open(path, what);
    return { image: await readImage(archive, reference, what), [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

async function readImage(archive: Archive, { name }: ArchiveReference, what: string): Promise<ImageHandle> {
  const item = chooseItem(parseItems(await archive.document('manifest.json'), what), name, what);
  const configBytes = await archive.document(item.Config);
  return {
    // There is no manifest; the digest of the configuration is what Docker calls the image's id.
    digest: digestOf(configBytes),
    config: parseConfig(configBytes, `the configuration in ${what}`),
    layers: item.Layers.map((layer) => layerSource(archive, layer)),
  };
}

function layerSource(archive: Archive, name: string): LayerSource {
  const blob = archive.find(name);
  return {
    label: shownName(name).slice(0, 80),
    size: blob.size,
    // The content is checked against the digest in the configuration when it is read.
    fetch: async ({ onBytes }) => {
      onBytes(blob.size);
      return blob;
    },
  };
}

class Archive {
  readonly #path: string;
  readonly #what: string;
  readonly #members: ReadonlyMap<string, Member>;

  private constructor(path: string, what: string, members: ReadonlyMap<string, Member>) {
    this.#path = path;
    this.#what = what;
    this.#members = members;
  }

  static async open(path: string, what: string): Promise<Archive> {
    const members = new Map<string, Member>();
    const { size } = await stat(path);
    for await (const { entry, offset } of readTar(openLayer({ path, start: 0, size }))) {
      const isLink = entry.type === 'symlink' || entry.type === 'hardlink';
      if (entry.type !== 'file' && !isLink) continue;
      const name = posix.normalize(entry.path);
      // A hard link names a member from the archive's root, a symlink from its own directory.
      const base = entry.type === 'symlink' ? posix.dirname(name) : '.';
      const link = isLink ? { link: posix.join(base, entry.link) } : {};
      members.set(name, { offset, size: entry.size, ...link });
      if (members.size > MAX_MEMBERS) throw new AenvError('image_invalid', `${what} has too many members`);
    }
    return new Archive(path, what, members);
  }

  find(name: string): StoredBlob {
    let member = this.#members.get(posix.normalize(name));
    for (let links = 0; member?.link !== undefined && links < MAX_LINKS; links += 1) {
      member = this.#members.get(member.link);
    }
    if (member && member.link === undefined) return { path: this.#path, start: member.offset, size: member.size };
    throw new AenvError('image_invalid', `${this.#what} lacks its member ${shownName(name)}`, {
      remedy: 'Check that the file was made by docker save and is complete.',
    });
  }

  async document(name: string): Promise<Buffer> {
    const { path, start, size } = this.find(name);
    if (size > MAX_DOCUMENT_BYTES)
      throw new AenvError('image_invalid', `${this.#what}: ${shownName(name)} is too large`);
    await using file = await open(path, 'r');
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size), 0, size, start);
    return buffer.subarray(0, bytesRead);
  }
}

/** The archive itself, or a decompressed copy: members are read from where they stand in the file. */
async function plainArchive(file: string, scratchPath: string): Promise<{ path: string; isTemporary: boolean }> {
  const { size } = await stat(file).catch((error: unknown) => {
    throw fileError(file, error);
  });
  const whole = { path: file, start: 0, size };
  const isPlain = !(await isCompressed(whole).catch((error: unknown) => {
    throw fileError(file, error);
  }));
  if (isPlain) return { path: file, isTemporary: false };
  const path = await ownedName(scratchPath);
  await using copy = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of openLayer(whole)) await copy.writeFile(chunk);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
  return { path, isTemporary: true };
}

function parseItems(bytes: Buffer, what: string): ManifestItem[] {
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString('utf8'));
  } catch (error) {
    throw new AenvError('image_invalid', `manifest.json in ${what} is not valid JSON`, { cause: error });
  }
  const items = Array.isArray(value) ? value : [];
  if (items.length > 0 && items.every(isItem)) {
    return items.map((item) => ({ ...item, RepoTags: Array.isArray(item.RepoTags) ? item.RepoTags : [] }));
  }
  throw new AenvError('image_invalid', `manifest.json in ${what} lists no image`);
}

function isItem(value: unknown): value is ManifestItem {
  if (typeof value !== 'object' || value === null) return false;
  const { Config, Layers } = value as Partial<ManifestItem>;
  return typeof Config === 'string' && Array.isArray(Layers) && Layers.every((layer) => typeof layer === 'string');
}

function chooseItem(items: ManifestItem[], name: string | undefined, what: string): ManifestItem {
  const matches =
    name === undefined ? items : items.filter(({ RepoTags }) => RepoTags.some((tag) => isSame(tag, name)));
  const [first] = matches;
  if (first && matches.length === 1) return first;
  const names = items.flatMap(({ RepoTags }) => RepoTags).slice(0, 20);
  const problem = name === undefined ? 'several images' : `no image ${shownName(name)}`;
  throw new AenvError('image_not_found', `${what} has ${problem}`, {
    remedy: `Name one of its images: ${names.map(shownName).join(', ')}.`,
  });
}

function isSame(tag: unknown, name: string): boolean {
  try {
    return formatReference(parseReference(String(tag))) === formatReference(parseReference(name));
  } catch {
    return tag === name;
  }
}
