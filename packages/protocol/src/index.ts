export * as envd from './envd.ts';
