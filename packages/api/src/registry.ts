/** Credentials for the registry that an image comes from. */
import type { RegistryCredentials } from '@aenv/orchestrator';
import type { Schema } from '@aenv/protocol';
import { badRequest } from './errors.ts';
import { refuse } from './refusals.ts';

export function registryCredentials(given: Schema<'ImageRegistry'> | undefined): RegistryCredentials | undefined {
  if (given === undefined) return undefined;
  refuse(
    given.type !== 'registry',
    `Logging in with ${given.type} credentials`,
    'Get a token and send type: registry.',
  );
  if (!given.username || !given.password) throw badRequest('Registry credentials need a username and a password.');
  return { username: given.username, password: given.password };
}
