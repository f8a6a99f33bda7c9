/**
 * Image references: what a person types, taken apart. The text is hostile input.
 *
 * Grammar of registry references: distribution/reference (`[host[:port]/]path[:tag][@digest]`), with Docker's defaults:
 * without a host it is docker.io, without a path prefix there it is `library/`, without tag and digest it is `latest`.
 * Local sources are written as skopeo does: `oci:DIR[:tag]` and `docker-archive:FILE[:name:tag]`; neither path may hold
 * a colon.
 */
import { isAbsolute, normalize } from 'node:path';
import { AenvError } from '@aenv/std';
import { isDigest } from './digest.ts';

export interface RegistryReference {
  kind: 'registry';
  /** Host and port as they are named (`docker.io`, `ghcr.io`, `127.0.0.1:5000`). */
  registry: string;
  /** Path in the registry, such as `library/ubuntu`. */
  repository: string;
  tag?: string;
  digest?: string;
}

export interface LayoutReference {
  kind: 'oci';
  /** Absolute path of the layout. */
  directory: string;
  tag?: string;
}

export interface ArchiveReference {
  kind: 'docker-archive';
  /** Absolute path of what `docker save` wrote. */
  file: string;
  /** Which of several images, as the archive names it (`name:tag`). */
  name?: string;
}

export type ImageReference = RegistryReference | LayoutReference | ArchiveReference;

const MAX_LENGTH = 4096;
const MAX_REPOSITORY_LENGTH = 255;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const PATH_COMPONENT = /^[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*$/;
const HOST_LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
const IPV6_HOST = /^\[[0-9A-Fa-f:.]{2,45}\]$/;
const DOCKER_HUB_NAMES = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);

/** Takes a reference apart; `image_reference_invalid` says what is wrong with it. */
export function parseReference(text: string): ImageReference {
  if (text === '') throw invalid(text, 'it is empty');
  if (text.length > MAX_LENGTH) throw invalid(text, `it is longer than ${MAX_LENGTH} characters`);
  if (text.startsWith('oci:')) return parseLayout(text);
  if (text.startsWith('docker-archive:')) return parseArchive(text);
  return parseRegistryReference(text.startsWith('docker://') ? text.slice('docker://'.length) : text);
}

/** The canonical text; `parseReference` of it gives the same reference again. */
export function formatReference(reference: ImageReference): string {
  if (reference.kind === 'oci') return `oci:${reference.directory}${suffix(':', reference.tag)}`;
  if (reference.kind === 'docker-archive') return `docker-archive:${reference.file}${suffix(':', reference.name)}`;
  const { registry, repository, tag, digest } = reference;
  return `${registry}/${repository}${suffix(':', tag)}${suffix('@', digest)}`;
}

function suffix(separator: string, value: string | undefined): string {
  return value === undefined ? '' : separator + value;
}

function parseLayout(text: string): LayoutReference {
  const [directory, tag] = splitOnce(text.slice('oci:'.length), ':');
  if (tag !== undefined && !TAG.test(tag)) throw invalid(text, `“${shown(tag)}” is not a tag`);
  return { kind: 'oci', directory: localPath(text, directory), ...(tag === undefined ? {} : { tag }) };
}

function parseArchive(text: string): ArchiveReference {
  const [file, name] = splitOnce(text.slice('docker-archive:'.length), ':');
  if (name === '') throw invalid(text, 'nothing follows the last colon');
  return { kind: 'docker-archive', file: localPath(text, file), ...(name === undefined ? {} : { name }) };
}

function localPath(text: string, path: string): string {
  if (path.includes('\0')) throw invalid(text, 'the path holds a NUL character');
  if (!isAbsolute(path)) throw invalid(text, 'the path must be absolute');
  return normalize(path);
}

function parseRegistryReference(text: string): RegistryReference {
  const [beforeDigest, digest] = splitOnce(text, '@');
  if (digest !== undefined && !isDigest(digest)) {
    throw invalid(text, 'what follows @ is not a digest (sha256: and 64 lower-case hex digits)');
  }
  const [name, tag] = splitTag(beforeDigest);
  if (tag !== undefined && !TAG.test(tag)) throw invalid(text, `“${shown(tag)}” is not a tag`);
  const { registry, repository } = splitName(name);
  checkRegistry(text, registry);
  checkRepository(text, repository);
  const version = tag === undefined && digest === undefined ? 'latest' : tag;
  return {
    kind: 'registry',
    registry,
    repository,
    ...(version === undefined ? {} : { tag: version }),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** The tag follows the last colon, unless a slash follows it: then the colon belongs to a port. */
function splitTag(text: string): [string, string | undefined] {
  const colon = text.lastIndexOf(':');
  if (colon === -1 || text.indexOf('/', colon) !== -1) return [text, undefined];
  return [text.slice(0, colon), text.slice(colon + 1)];
}

function splitName(name: string): { registry: string; repository: string } {
  const slash = name.indexOf('/');
  const first = slash === -1 ? '' : name.slice(0, slash);
  // Docker's rule: only what looks like a host is one; `user/image` is a path on Docker Hub.
  const isHost = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase();
  const registry = isHost ? first : 'docker.io';
  const path = isHost ? name.slice(slash + 1) : name;
  if (!DOCKER_HUB_NAMES.has(registry)) return { registry, repository: path };
  return { registry: 'docker.io', repository: path.includes('/') ? path : `library/${path}` };
}

function checkRegistry(text: string, registry: string): void {
  const [, host = '', port] = /^(\[[^\]]*\]|[^:]*)(?::(.*))?$/s.exec(registry) ?? [];
  const isName = host.length <= 253 && host.split('.').every((label) => HOST_LABEL.test(label));
  if (!isName && !IPV6_HOST.test(host)) throw invalid(text, `“${shown(host)}” is not a host name`);
  if (port === undefined) return;
  if (!/^[0-9]{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535) {
    throw invalid(text, `“${shown(port)}” is not a port`);
  }
}

function checkRepository(text: string, repository: string): void {
  if (repository.length > MAX_REPOSITORY_LENGTH) {
    throw invalid(text, `the name is longer than ${MAX_REPOSITORY_LENGTH} characters`);
  }
  for (const component of repository.split('/')) {
    if (PATH_COMPONENT.test(component)) continue;
    const hint = PATH_COMPONENT.test(component.toLowerCase()) ? ' (names are lower case)' : '';
    throw invalid(text, `“${shown(component)}” is not a valid part of a name${hint}`);
  }
}

function splitOnce(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

function invalid(text: string, reason: string): AenvError {
  return new AenvError('image_reference_invalid', `“${shown(text)}” is not an image reference: ${reason}`, {
    remedy: 'Write registry/name:tag, name@sha256:…, oci:/path/of/layout:tag or docker-archive:/path/of/file.tar.',
  });
}

/** Hostile text made fit for a terminal and a log line. */
function shown(text: string): string {
  const cut = text.length > 100 ? `${text.slice(0, 100)}…` : text;
  return cut.replace(/[^\x20-\x7e…]/g, '?');
}
