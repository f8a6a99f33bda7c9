/**
 * OCI image indexes, manifests and configurations (opencontainers/image-spec v1.1) and Docker's schema 2 twins, checked
 * before use: they come from a registry, which is not trusted.
 */
import { arch as hostArchitecture } from 'node:process';
import { AenvError } from '@aenv/std';
import { isDigest } from './digest.ts';

export const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];

/** Manifests and configurations are small; a registry that sends more is broken or hostile. */
export const MAX_DOCUMENT_BYTES = 4 << 20;
const MAX_LAYERS = 1000;

export interface Platform {
  os: string;
  architecture: string;
  variant?: string;
}

export interface Descriptor {
  mediaType: string;
  digest: string;
  /** Bytes. */
  size: number;
  platform?: Platform;
  annotations: Record<string, string>;
}

export interface ImageManifest {
  kind: 'manifest';
  config: Descriptor;
  layers: Descriptor[];
}

export interface ImageIndex {
  kind: 'index';
  manifests: Descriptor[];
}

/** The parts of an image's configuration that a template takes over. */
export interface ImageConfig {
  env: Record<string, string>;
  workingDir: string;
  /** `user`, `uid`, `user:group` or empty. */
  user: string;
  entrypoint: string[];
  cmd: string[];
  labels: Record<string, string>;
  architecture: string;
}

export interface ParsedConfig extends ImageConfig {
  os: string;
  /** Digests of the uncompressed layers, lowest first. */
  diffIds: string[];
}

const ARCHITECTURES: Record<string, string> = { x64: 'amd64', arm64: 'arm64' };

export function hostPlatform(): Platform {
  return { os: 'linux', architecture: ARCHITECTURES[hostArchitecture] ?? hostArchitecture };
}

/** `linux/amd64` or `linux/arm64/v8`. */
export function parsePlatform(text: string): Platform {
  const [os = '', architecture = '', variant, ...rest] = text.split('/');
  if (![os, architecture, variant ?? 'v'].every((part) => /^[a-z0-9._-]{1,64}$/.test(part)) || rest.length > 0) {
    throw new AenvError('bad_request', 'platform must look like linux/amd64');
  }
  return { os, architecture, ...(variant === undefined ? {} : { variant }) };
}

export function formatPlatform({ os, architecture, variant }: Platform): string {
  return `${os}/${architecture}${variant ? `/${variant}` : ''}`;
}

/** True when an image for `offered` runs on `wanted`. A variant counts only where both name one. */
export function platformMatches(offered: Platform, wanted: Platform): boolean {
  const sameVariant = !offered.variant || !wanted.variant || offered.variant === wanted.variant;
  return offered.os === wanted.os && offered.architecture === wanted.architecture && sameVariant;
}

export function parseManifest(bytes: Uint8Array, what: string): ImageManifest | ImageIndex {
  const json = parseJson(bytes, what);
  if (Array.isArray(json.manifests)) {
    return { kind: 'index', manifests: json.manifests.map((item) => parseDescriptor(item, what)) };
  }
  if (json.schemaVersion === 1) {
    throw invalid(what, 'is in the obsolete schema 1', 'Push the image again with a current tool.');
  }
  if (!Array.isArray(json.layers)) throw invalid(what, 'is neither an image manifest nor an index');
  if (json.layers.length > MAX_LAYERS) throw invalid(what, `lists more than ${MAX_LAYERS} layers`);
  return {
    kind: 'manifest',
    config: parseDescriptor(json.config, what),
    layers: json.layers.map((item) => checkLayerType(parseDescriptor(item, what), what)),
  };
}

function checkLayerType(layer: Descriptor, what: string): Descriptor {
  // Compression is told by the content itself, as containerd does: the type is often wrong about it.
  if (/(?:^|[.+])tar(?:$|[.+])/.test(layer.mediaType)) return layer;
  throw invalid(what, `is not a container image: it has a layer of type ${layer.mediaType}`);
}

/** The entry of an index for `wanted`; `image_platform_missing` lists what there is instead. */
export function choosePlatform(index: ImageIndex, wanted: Platform, what: string): Descriptor {
  const match = index.manifests.find((item) => item.platform === undefined || platformMatches(item.platform, wanted));
  if (match) return match;
  const offered = index.manifests.flatMap((item) => (item.platform ? [formatPlatform(item.platform)] : []));
  throw platformMissing(what, wanted, offered);
}

export function platformMissing(what: string, wanted: Platform, offered: string[]): AenvError {
  const list = [...new Set(offered)].filter((name) => !name.startsWith('unknown/')).slice(0, 20);
  return new AenvError(
    'image_platform_missing',
    `${what} is not built for ${formatPlatform(wanted)}${list.length > 0 ? `, only for ${list.join(', ')}` : ''}`,
    { remedy: 'Use an image for this architecture.' },
  );
}

export function parseConfig(bytes: Uint8Array, what: string): ParsedConfig {
  const json = parseJson(bytes, what);
  const runtime = isObject(json.config) ? json.config : {};
  const rootfs = isObject(json.rootfs) ? json.rootfs : {};
  const diffIds = rootfs.diff_ids;
  if (!Array.isArray(diffIds) || !diffIds.every(isDigest)) throw invalid(what, 'lists no digests of its layers');
  return {
    env: environment(runtime.Env),
    workingDir: text(runtime.WorkingDir),
    user: text(runtime.User),
    entrypoint: strings(runtime.Entrypoint),
    cmd: strings(runtime.Cmd),
    labels: stringMap(runtime.Labels),
    architecture: text(json.architecture),
    os: text(json.os) || 'linux',
    diffIds,
  };
}

function parseDescriptor(value: unknown, what: string): Descriptor {
  if (!isObject(value)) throw invalid(what, 'has a malformed entry');
  const { digest, size, mediaType } = value;
  if (!isDigest(digest)) throw invalid(what, 'names a malformed digest');
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw invalid(what, 'names an impossible size');
  }
  return {
    digest,
    size,
    mediaType: text(mediaType),
    annotations: stringMap(value.annotations),
    ...(isObject(value.platform) ? { platform: parseDescriptorPlatform(value.platform) } : {}),
  };
}

function parseDescriptorPlatform(value: Record<string, unknown>): Platform {
  const variant = text(value.variant);
  return { os: text(value.os), architecture: text(value.architecture), ...(variant ? { variant } : {}) };
}

/** The JSON object in `bytes`; `image_invalid` when there is none. */
export function parseJson(bytes: Uint8Array, what: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    throw new AenvError('image_invalid', `${what} is not valid JSON`, { cause: error });
  }
  if (!isObject(value)) throw invalid(what, 'is not a JSON object');
  return value;
}

function invalid(what: string, reason: string, remedy?: string): AenvError {
  return new AenvError('image_invalid', `${what} ${reason}`, { remedy });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** `NAME=value` lines; the last one of a name counts, and one without a value is none. */
function environment(value: unknown): Record<string, string> {
  const pairs = strings(value).map((line) => [line, line.indexOf('=')] as const);
  return Object.fromEntries(
    pairs.filter(([, equals]) => equals > 0).map(([line, equals]) => [line.slice(0, equals), line.slice(equals + 1)]),
  );
}

function stringMap(value: unknown): Record<string, string> {
  if (!isObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((pair): pair is [string, string] => typeof pair[1] === 'string'),
  );
}
