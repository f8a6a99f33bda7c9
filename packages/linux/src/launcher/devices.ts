/** Device nodes that a VMM opens as its unprivileged user. */
import { chmod, mkdir, stat } from 'node:fs/promises';
import { AenvError, isSystemError, type Logger } from '@aenv/std';
import { mustRun } from '../commands.ts';

const TUN = '/dev/net/tun';

/**
 * Lets every user open /dev/net/tun, as distributions do: attaching to a tap still takes its owner. Makes the node where
 * a container lacks it.
 */
export async function makeDevicesUsable(logger: Logger): Promise<void> {
  try {
    const { mode } = await stat(TUN);
    if ((mode & 0o006) === 0o006) return;
    await chmod(TUN, 0o666);
    logger.info({}, `${TUN} was made readable and writable for all users`);
  } catch (error) {
    if (!isSystemError(error, 'ENOENT')) throw deviceError(error);
    await mkdir('/dev/net', { recursive: true });
    await mustRun('mknod', ['-m', '0666', TUN, 'c', '10', '200']).catch((reason) =>
      Promise.reject(deviceError(reason)),
    );
  }
}

function deviceError(cause: unknown): AenvError {
  return new AenvError('host_unsupported', `${TUN} cannot be used: ${cause instanceof Error ? cause.message : cause}`, {
    remedy: 'Load the module (modprobe tun), and give a container the device.',
    cause,
  });
}
