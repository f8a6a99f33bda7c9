/** What the three kinds of image sources have in common. */
import type { ParsedConfig, Platform } from './manifest.ts';

/** A part of a local file. */
export interface StoredBlob {
  path: string;
  /** First byte. */
  start: number;
  /** Bytes. */
  size: number;
}

export interface FetchOptions {
  /** Called with the bytes that are here so far. */
  onBytes: (completed: number) => void;
  signal?: AbortSignal;
}

export interface LayerSource {
  /** Names the layer in progress and messages. */
  label: string;
  /** Bytes as stored or transferred. */
  size: number;
  /** Brings the layer onto this machine, verified where it has a digest of its own. */
  fetch(options: FetchOptions): Promise<StoredBlob>;
}

export interface ImageHandle {
  /** Digest of the image's manifest; of its configuration where there is no manifest (docker-archive). */
  digest: string;
  config: ParsedConfig;
  /** Lowest first; as many as `config.diffIds`. */
  layers: LayerSource[];
}

export interface OpenOptions {
  platform: Platform;
  signal?: AbortSignal;
}
