/** An image in a registry. */
import type { BlobCache } from '../blob-cache.ts';
import { digestOf, shortDigest } from '../digest.ts';
import { choosePlatform, type Descriptor, type ImageManifest, parseConfig, parseManifest } from '../manifest.ts';
import { formatReference, type RegistryReference } from '../reference.ts';
import type { ImageHandle, LayerSource, OpenOptions } from '../source.ts';
import type { RegistryClient } from './client.ts';

/** Indexes may point to indexes; nobody nests them deeper. */
const MAX_INDEX_DEPTH = 3;

export async function openRegistryImage(
  client: RegistryClient,
  cache: BlobCache,
  reference: RegistryReference,
  { platform }: OpenOptions,
): Promise<ImageHandle> {
  const what = formatReference(reference);
  let wanted = reference.digest ?? reference.tag ?? 'latest';
  for (let depth = 0; depth <= MAX_INDEX_DEPTH; depth += 1) {
    const bytes = await client.manifest(wanted);
    const manifest = parseManifest(bytes, what);
    if (manifest.kind === 'manifest') return openManifest(client, cache, manifest, digestOf(bytes));
    wanted = choosePlatform(manifest, platform, what).digest;
  }
  throw new Error(`${what}: an index in an index in an index`);
}

async function openManifest(
  client: RegistryClient,
  cache: BlobCache,
  manifest: ImageManifest,
  digest: string,
): Promise<ImageHandle> {
  const config = parseConfig(await client.smallBlob(manifest.config.digest), 'the configuration of the image');
  return { digest, config, layers: manifest.layers.map((layer) => layerSource(client, cache, layer)) };
}

function layerSource(client: RegistryClient, cache: BlobCache, { digest, size }: Descriptor): LayerSource {
  const label = shortDigest(digest);
  return {
    label,
    size,
    fetch: async ({ onBytes }) => {
      const blob = await cache.get({ digest, size }, `layer ${label}`, (file, offset) =>
        client.blobToFile({ digest, size, onBytes }, file, offset),
      );
      onBytes(size);
      return blob;
    },
  };
}
