export {
  isInstalled,
  REGISTRY_CREDENTIALS,
  type RegistryOptions,
  registryMissing,
  startRegistry,
  type TestRegistry,
} from './registry.ts';
export {
  addIndexToLayout,
  addToLayout,
  hostArchitecture,
  packTar,
  type TestImage,
  type TestLayer,
  type TestMember,
} from './registry-images.ts';
