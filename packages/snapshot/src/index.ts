export { blankMemory } from './blank-memory.ts';
export type { DiskFormat } from './disk.ts';
export { type Home, homeLayout, prepareHome } from './home.ts';
export { LayerStore } from './layers.ts';
export {
  type DiskImage,
  type GuestState,
  MANIFEST_VERSION,
  type MachineShape,
  type Manifest,
  type MemoryImage,
  type PausedMemory,
  type PauseManifest,
  parseManifest,
  readManifest,
  type TemplateManifest,
  writeManifest,
} from './manifest.ts';
export { SandboxStore, type SavedState } from './sandboxes.ts';
export { type DiskBase, type TemplateFiles, TemplateStore } from './templates.ts';
