export { cloneLayer, createLayer, type DiskFormat, type LayerRequest } from './disk.ts';
export { type Home, homeLayout, prepareHome } from './home.ts';
export {
  MANIFEST_VERSION,
  type MachineShape,
  type Manifest,
  type PauseManifest,
  parseManifest,
  readManifest,
  type TemplateManifest,
  writeManifest,
} from './manifest.ts';
export { SandboxStore, type SavedState } from './sandboxes.ts';
export { type DiskBase, type TemplateFiles, TemplateStore } from './templates.ts';
