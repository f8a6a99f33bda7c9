export * from './api.ts';
export * as envd from './envd.ts';
