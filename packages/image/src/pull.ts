/** From a reference to a disk: resolve, fetch, check, merge, write. */
import { mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { AenvError, isSystemError, Semaphore } from '@aenv/std';
import { BlobCache } from './blob-cache.ts';
import { splitDigest } from './digest.ts';
import { openArchive } from './docker-archive.ts';
import { makeDisk, type ToolRunner } from './ext4.ts';
import { buildTree, flatten, listAttributes, measureTree, scanLayer } from './flatten.ts';
import { hostPlatform, type ImageConfig, type Platform, platformMatches, platformMissing } from './manifest.ts';
import { openLayout } from './oci-layout.ts';
import { formatReference, type ImageReference } from './reference.ts';
import type { Credentials } from './registry/auth.ts';
import { RegistryClient } from './registry/client.ts';
import { openRegistryImage } from './registry/source.ts';
import type { ImageHandle, StoredBlob } from './source.ts';
import type { TarEntry } from './tar/entry.ts';

export interface PullProgress {
  /** `resolve`, `layer` (fetched and checked; one sequence for each) or `disk`. */
  step: 'resolve' | 'layer' | 'disk';
  /** Which layer, for `layer`. */
  layer?: string;
  completedBytes: number;
  totalBytes: number;
}

export interface PullRequest {
  reference: ImageReference;
  /** Directory that the disk goes into, made when it is missing. Equal images of equal size share one disk. */
  destination: string;
  /** Directory of downloaded blobs, made when it is missing. */
  cacheDir: string;
  /** Size of the disk, MiB. */
  diskSizeMb: number;
  credentials?: Credentials;
  platform?: Platform;
  /** `host` or `host:port` of registries that speak plain HTTP. Loopback addresses always do. */
  insecureRegistries?: readonly string[];
  runTool: ToolRunner;
  onProgress?: (progress: PullProgress) => void;
  signal?: AbortSignal;
}

export interface PulledImage {
  /** Digest of the manifest for this platform. */
  digest: string;
  /** The disk in `destination`: raw, sparse, ext4. */
  diskPath: string;
  config: ImageConfig;
  /** Bytes that the disk occupies; it is sparse. */
  sizeBytes: number;
}

interface CheckedLayer {
  blob: StoredBlob;
  entries: TarEntry[];
}

const CONCURRENT_LAYERS = 3;
/** Counts up whenever the same image would give another disk, so that disks made before are not taken for it. */
const DISK_REVISION = 1;

/**
 * Pulls an image and makes its disk. Rejects with `image_*`, `registry_*`, `disk_full`, `host_missing_tool`, or
 * `bad_request` when the disk is too small; no disk appears then. A disk that is there already is not made again.
 */
export async function pullImage(request: PullRequest): Promise<PulledImage> {
  await mkdir(request.cacheDir, { recursive: true, mode: 0o700 });
  await mkdir(request.destination, { recursive: true, mode: 0o711 });
  const cache = new BlobCache(request.cacheDir);
  await cache.prune();
  const platform = request.platform ?? hostPlatform();
  await using source = await openSource(request, cache, platform);
  const { image } = source;
  checkImage(image, platform, request.reference);
  request.onProgress?.({ step: 'resolve', completedBytes: 1, totalBytes: 1 });
  const diskPath = join(request.destination, diskName(image.digest, request.diskSizeMb));
  const sizeBytes = (await occupiedBytes(diskPath)) ?? (await writeDisk(image, diskPath, request));
  const { os: _os, diffIds: _diffIds, ...config } = image.config;
  return { digest: image.digest, diskPath, config, sizeBytes };
}

function diskName(digest: string, sizeMb: number): string {
  return `${splitDigest(digest).hex.slice(0, 64)}-${sizeMb}-${DISK_REVISION}.ext4`;
}

/** A disk appears in one rename, so one that is there is complete. */
async function occupiedBytes(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).blocks * 512;
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
}

async function openSource(
  { reference, cacheDir, credentials, insecureRegistries = [], signal }: PullRequest,
  cache: BlobCache,
  platform: Platform,
): Promise<AsyncDisposable & { image: ImageHandle }> {
  if (reference.kind === 'oci') {
    return { image: await openLayout(reference, { platform, signal }), [Symbol.asyncDispose]: async () => {} };
  }
  if (reference.kind === 'docker-archive') return openArchive(reference, join(cacheDir, 'archive.tar'));
  const client = new RegistryClient(reference, { credentials, insecureRegistries, signal });
  try {
    const image = await openRegistryImage(client, cache, reference, { platform, signal });
    return { image, [Symbol.asyncDispose]: () => client.close() };
  } catch (error) {
    await client.close();
    throw error;
  }
}

function checkImage({ config, layers }: ImageHandle, wanted: Platform, reference: ImageReference): void {
  const what = formatReference(reference);
  const offered = { os: config.os, architecture: config.architecture };
  if (!platformMatches(offered, wanted)) throw platformMissing(what, wanted, [`${offered.os}/${offered.architecture}`]);
  if (layers.length === config.diffIds.length) return;
  throw new AenvError('image_invalid', `${what} has ${layers.length} layers, but digests for ${config.diffIds.length}`);
}

/** Fetches and scans all layers, a few at a time. The first failure stops the others. */
async function checkedLayers(image: ImageHandle, { onProgress, signal }: PullRequest): Promise<CheckedLayer[]> {
  const slots = new Semaphore(CONCURRENT_LAYERS);
  const failed = new AbortController();
  const stop = signal ? AbortSignal.any([signal, failed.signal]) : failed.signal;
  const work = image.layers.map((layer, index) =>
    slots.run(async () => {
      stop.throwIfAborted();
      const report = (completedBytes: number) =>
        onProgress?.({ step: 'layer', layer: layer.label, completedBytes, totalBytes: layer.size });
      const blob = await layer.fetch({ onBytes: report, signal: stop });
      const entries = await scanLayer(blob, image.config.diffIds[index] as string, layer.label);
      return { blob, entries };
    }),
  );
  try {
    return await Promise.all(work);
  } catch (error) {
    failed.abort(error);
    await Promise.allSettled(work);
    throw error;
  }
}

/** Makes the disk; returns the bytes that it occupies. */
async function writeDisk(image: ImageHandle, path: string, request: PullRequest): Promise<number> {
  const { diskSizeMb, runTool, onProgress, signal } = request;
  const layers = await checkedLayers(image, request);
  const tree = buildTree(layers.map(({ entries }) => entries));
  const totals = measureTree(tree);
  const blobs = layers.map(({ blob }) => blob);
  const onBytes = (completedBytes: number) =>
    onProgress?.({ step: 'disk', completedBytes, totalBytes: totals.contentBytes });
  return makeDisk({
    path,
    sizeMb: diskSizeMb,
    totals,
    identity: image.digest,
    tar: flatten(tree, blobs, { onBytes }),
    attributes: listAttributes(tree),
    runTool,
    signal,
  });
}
