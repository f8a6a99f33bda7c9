/** Small images made in a test, byte by byte, as OCI layouts. */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { TAR_END, type TarEntry, tarHeader, tarPadding } from '@aenv/image';

export interface TestMember extends Partial<Omit<TarEntry, 'size'>> {
  path: string;
  content?: string | Uint8Array;
}

/** A tar archive of these members; regular files of mode 0644 owned by root unless they say otherwise. */
export function packTar(members: readonly TestMember[]): Buffer {
  const parts = members.flatMap(({ content = '', ...rest }) => {
    const bytes = Buffer.from(content);
    return [tarHeader({ ...PLAIN, ...rest, size: bytes.length }), bytes, tarPadding(bytes.length)];
  });
  return Buffer.concat([...parts, TAR_END]);
}

const PLAIN = {
  type: 'file',
  mode: 0o644,
  uid: 0,
  gid: 0,
  mtime: 1_700_000_000,
  link: '',
  major: 0,
  minor: 0,
  xattrs: new Map<string, string>(),
} as const;

export interface TestLayer {
  tar: Uint8Array;
  /** `gzip` by default. */
  compression?: 'none' | 'gzip' | 'zstd';
}

export interface TestImage {
  layers: readonly TestLayer[];
  /** The `config` object of the image configuration (Env, WorkingDir, …). */
  config?: Record<string, unknown>;
  /** `amd64` on x86-64 machines, and so on, by default. */
  architecture?: string;
}

const SUFFIXES = { none: '', gzip: '+gzip', zstd: '+zstd' };

/** Adds an image to the layout in `directory`, which is made when it is missing; returns the digest of its manifest. */
export async function addToLayout(directory: string, tag: string, image: TestImage): Promise<string> {
  await mkdir(join(directory, 'blobs', 'sha256'), { recursive: true });
  await writeFile(join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  const manifest = await writeImage(directory, image);
  const index = await readIndex(directory);
  index.manifests.push({ ...manifest, annotations: { 'org.opencontainers.image.ref.name': tag } });
  await writeFile(join(directory, 'index.json'), JSON.stringify(index));
  return manifest.digest;
}

/** Adds an index of one image per architecture. */
export async function addIndexToLayout(directory: string, tag: string, images: readonly TestImage[]): Promise<string> {
  await mkdir(join(directory, 'blobs', 'sha256'), { recursive: true });
  await writeFile(join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  const manifests: object[] = [];
  for (const image of images) {
    const platform = { os: 'linux', architecture: image.architecture ?? hostArchitecture() };
    manifests.push({ ...(await writeImage(directory, image)), platform });
  }
  const mediaType = 'application/vnd.oci.image.index.v1+json';
  const blob = await writeBlob(directory, JSON.stringify({ schemaVersion: 2, mediaType, manifests }));
  const index = await readIndex(directory);
  index.manifests.push({ ...blob, mediaType, annotations: { 'org.opencontainers.image.ref.name': tag } });
  await writeFile(join(directory, 'index.json'), JSON.stringify(index));
  return blob.digest;
}

export function hostArchitecture(): string {
  return process.arch === 'x64' ? 'amd64' : process.arch;
}

async function writeImage(directory: string, { layers, config = {}, architecture = hostArchitecture() }: TestImage) {
  const descriptors: object[] = [];
  for (const { tar, compression = 'gzip' } of layers) {
    const blob = await writeBlob(directory, compress(tar, compression));
    descriptors.push({ ...blob, mediaType: `application/vnd.oci.image.layer.v1.tar${SUFFIXES[compression]}` });
  }
  const rootfs = { type: 'layers', diff_ids: layers.map(({ tar }) => digest(tar)) };
  const configBlob = await writeBlob(directory, JSON.stringify({ os: 'linux', architecture, config, rootfs }));
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = {
    schemaVersion: 2,
    mediaType,
    config: { ...configBlob, mediaType: 'application/vnd.oci.image.config.v1+json' },
    layers: descriptors,
  };
  return { ...(await writeBlob(directory, JSON.stringify(manifest))), mediaType };
}

function compress(tar: Uint8Array, compression: 'none' | 'gzip' | 'zstd'): Uint8Array {
  if (compression === 'gzip') return gzipSync(tar);
  return compression === 'zstd' ? zstdCompressSync(tar) : tar;
}

async function readIndex(directory: string): Promise<{ schemaVersion: number; manifests: object[] }> {
  try {
    return JSON.parse(await readFile(join(directory, 'index.json'), 'utf8'));
  } catch {
    return { schemaVersion: 2, manifests: [] };
  }
}

async function writeBlob(directory: string, content: string | Uint8Array): Promise<{ digest: string; size: number }> {
  const bytes = Buffer.from(content);
  const name = digest(bytes);
  await writeFile(join(directory, 'blobs', 'sha256', name.slice('sha256:'.length)), bytes);
  return { digest: name, size: bytes.length };
}

function digest(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
