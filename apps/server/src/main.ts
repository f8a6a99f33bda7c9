#!/usr/bin/env node
/** The entry: turns the compile cache on before any module of ours is loaded. */
import { enableCompileCache } from 'node:module';

/** Only root may write here: what lies in it is run by the server. */
const COMPILE_CACHE = '/var/cache/aenv/node';

// A server that need not compile starts faster and keeps about 20 MB less in memory. Where the directory can't be written
// (a read-only file system), Node goes on without it.
if (process.getuid?.() === 0) enableCompileCache(COMPILE_CACHE);
await import('./process.ts');
