/** The guest daemon as the orchestrator asks it, over the slot's network. */
import { createHash, randomBytes } from 'node:crypto';
import { createGuestClient, type GuestClient } from '@aenv/guest';
import { withDeadline } from '@aenv/std';
import type { GuestIdentity, GuestPort } from './guest-port.ts';

const ENTROPY_BYTES = 64;

/** One connection for one task: a connection must never outlive the run of the VM that it leads to. */
async function using<T>(address: string, options: object, work: (guest: GuestClient) => Promise<T>): Promise<T> {
  const guest = createGuestClient({ host: address, ...options });
  try {
    return await work(guest);
  } finally {
    await guest.close();
  }
}

export const aenvdGuests: GuestPort = {
  greet: (address, initKey, identity, { timeoutMs, signal }) =>
    using(address, { initKey }, async (guest) => {
      if (identity.occasion !== 'claimed') await guest.waitHealthy(timeoutMs, signal);
      signal.throwIfAborted();
      await guest.init({
        ...(identity.occasion === 'claimed' ? {} : names(identity)),
        dropStreams: identity.occasion === 'woken',
        entropy: randomBytes(ENTROPY_BYTES),
        timestamp: new Date(),
        envVars: identity.envVars,
        accessToken: identity.accessToken ?? '',
        initKey,
        defaultUser: identity.user,
        defaultWorkdir: identity.workdir,
      });
    }),
  sync: (address, initKey, timeoutMs) =>
    using(address, { initKey }, (guest) => withDeadline(guest.sync(), timeoutMs, 'writing to the disk')),
  metrics: (address, accessToken) => using(address, { accessToken }, (guest) => guest.metrics()),
  async start(address, { script, user, cwd, tag, timeoutMs, onOutput }) {
    const guest = createGuestClient({ host: address, user });
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    try {
      const started = await guest.processes.start({
        cmd: '/bin/sh',
        args: ['-c', script],
        ...(cwd === '' ? {} : { cwd }),
        tag,
        timeoutMs,
        onOutput: (stream, bytes) => {
          if (stream !== 'pty') onOutput?.(stream, decoders[stream].decode(bytes, { stream: true }));
        },
      });
      const exit = started.exit.then(({ exitCode }) => exitCode).finally(() => guest.close());
      exit.catch(() => {});
      return { pid: started.pid, exit };
    } catch (error) {
      await guest.close();
      throw error;
    }
  },
};

function names({ sandboxId, templateId, hostname }: GuestIdentity) {
  return { sandboxId, templateId, hostname, machineId: machineIdOf(sandboxId) };
}

/** As /etc/machine-id has it: 32 hex digits that differ between sandboxes and stay the same over a pause. */
function machineIdOf(sandboxId: string): string {
  return createHash('sha256').update(`machine-id ${sandboxId}`).digest('hex').slice(0, 32);
}
