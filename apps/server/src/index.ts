export { configurationPage } from './config/help.ts';
export { loadConfig } from './config/load.ts';
export type { Config } from './config/settings.ts';
export { createLogger } from './logging.ts';
export { type Machine, type OpenMachine, type RunningServer, startServer } from './server.ts';
