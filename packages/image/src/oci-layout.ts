/** An image in an OCI layout directory (image-spec v1.1 `image-layout.md`). */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError, isSystemError } from '@aenv/std';
import { hashFile } from './blob-cache.ts';
import { digestMismatch, digestOf, shortDigest, splitDigest, verifyDigest } from './digest.ts';
import {
  choosePlatform,
  type Descriptor,
  type ImageIndex,
  MAX_DOCUMENT_BYTES,
  parseConfig,
  parseManifest,
} from './manifest.ts';
import type { LayoutReference } from './reference.ts';
import type { ImageHandle, LayerSource, OpenOptions } from './source.ts';

const REF_NAME = 'org.opencontainers.image.ref.name';
const MAX_INDEX_DEPTH = 3;

export async function openLayout({ directory, tag }: LayoutReference, { platform }: OpenOptions): Promise<ImageHandle> {
  const what = `the layout ${directory}`;
  const index = parseManifest(await readDocument(join(directory, 'index.json')), what);
  if (index.kind !== 'index') throw new AenvError('image_invalid', `${what} has no index`);
  let descriptor = choosePlatform(chooseTag(index, tag, what), platform, what);
  for (let depth = 0; depth <= MAX_INDEX_DEPTH; depth += 1) {
    const bytes = await readBlob(directory, descriptor.digest);
    const manifest = parseManifest(bytes, what);
    if (manifest.kind === 'manifest') {
      const config = parseConfig(await readBlob(directory, manifest.config.digest), `the configuration in ${what}`);
      const layers = manifest.layers.map((layer) => layerSource(directory, layer));
      return { digest: digestOf(bytes), config, layers };
    }
    descriptor = choosePlatform(manifest, platform, what);
  }
  throw new AenvError('image_invalid', `${what} nests indexes too deeply`);
}

/** The entries with this tag; without a tag all of them, which must then belong to one image. */
function chooseTag(index: ImageIndex, tag: string | undefined, what: string): ImageIndex {
  const tags = [...new Set(index.manifests.map(({ annotations }) => annotations[REF_NAME] ?? ''))];
  if (tag === undefined && tags.length <= 1 && index.manifests.length > 0) return index;
  const manifests = index.manifests.filter(({ annotations }) => annotations[REF_NAME] === tag);
  if (tag !== undefined && manifests.length > 0) return { kind: 'index', manifests };
  const list = tags.filter((name) => name !== '').slice(0, 20);
  throw new AenvError('image_not_found', `${what} has ${tag === undefined ? 'several images' : `no image ${tag}`}`, {
    remedy: list.length > 0 ? `Name one of its tags: ${list.join(', ')}.` : 'Check that it is the right directory.',
  });
}

function layerSource(directory: string, { digest, size }: Descriptor): LayerSource {
  const label = shortDigest(digest);
  const path = blobPath(directory, digest);
  return {
    label,
    size,
    fetch: async ({ onBytes }) => {
      const actualSize = await fileSize(path);
      if (actualSize !== size) {
        throw new AenvError('image_invalid', `layer ${label} has ${actualSize} bytes instead of ${size}`, {
          remedy: 'The layout is damaged or incomplete: make it again.',
        });
      }
      const blob = { path, start: 0, size };
      const actual = await hashFile(blob, digest, onBytes);
      if (actual !== digest) throw digestMismatch(`layer ${label}`, digest, actual);
      return blob;
    },
  };
}

function blobPath(directory: string, digest: string): string {
  const { algorithm, hex } = splitDigest(digest);
  return join(directory, 'blobs', algorithm, hex);
}

async function readBlob(directory: string, digest: string): Promise<Buffer> {
  const path = blobPath(directory, digest);
  const bytes = await readDocument(path);
  verifyDigest(bytes, digest, path);
  return bytes;
}

async function readDocument(path: string): Promise<Buffer> {
  const size = await fileSize(path);
  if (size > MAX_DOCUMENT_BYTES) throw new AenvError('image_invalid', `${path} is larger than any manifest`);
  return readFile(path).catch((error: unknown) => {
    throw fileError(path, error);
  });
}

async function fileSize(path: string): Promise<number> {
  return (
    await stat(path).catch((error: unknown) => {
      throw fileError(path, error);
    })
  ).size;
}

/** Errors of opening a local source, as the user should see them. */
export function fileError(path: string, error: unknown): AenvError {
  if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) {
    return new AenvError('image_not_found', `${path} does not exist`, { remedy: 'Check the path.', cause: error });
  }
  if (isSystemError(error, 'EACCES') || isSystemError(error, 'EPERM')) {
    return new AenvError('image_not_found', `${path} cannot be read by the user that pulls images`, {
      remedy: 'Give others read access to it, and search access to the directories above it.',
      cause: error,
    });
  }
  return AenvError.from(error);
}
