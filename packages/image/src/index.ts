export type { ToolOutcome, ToolRun, ToolRunner } from './ext4.ts';
export { formatPlatform, hostPlatform, type ImageConfig, type Platform, parsePlatform } from './manifest.ts';
export { type PulledImage, type PullProgress, type PullRequest, pullImage } from './pull.ts';
export {
  type ArchiveReference,
  formatReference,
  type ImageReference,
  type LayoutReference,
  parseReference,
  type RegistryReference,
} from './reference.ts';
export type { Credentials } from './registry/auth.ts';
export type { EntryType, TarEntry } from './tar/entry.ts';
export { TAR_END, tarHeader, tarPadding } from './tar/writer.ts';
