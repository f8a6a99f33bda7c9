export { Ext4 } from './ext4.ts';
export type { Inode } from './ext4-inode.ts';
export { Qcow2 } from './qcow2.ts';
export { type ByteSource, FileSource } from './source.ts';
export { DiskStack } from './stack.ts';
export { compareTrees, type FileChange } from './trees.ts';
