/** What was in memory and on disk is there again, to the byte, however often; and a full disk costs nothing but the pause. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Sandbox } from 'e2b';
import { buildTemplate, createWorld, type World } from './support/world.ts';

const ROUNDS = 10;

let world: World;
let connection: World['connection'];

before(async () => {
  world = await createWorld();
  connection = world.connection;
  await buildTemplate(world.server, { name: 'debian', image: world.image });
});

after(async () => {
  await world?.destroy();
});

async function run(sandbox: Sandbox, script: string): Promise<string> {
  return (await sandbox.commands.run(script, { user: 'root', timeoutMs: 120_000 })).stdout.trim();
}

/** Adds files of random bytes, and moves and removes earlier ones; `end` decides what has reached the disk. */
function growth(round: number, end: 'sync' | 'true'): string {
  return `mkdir -p /tree/${round} && cd /tree/${round} &&
    for i in 1 2 3 4 5 6 7 8; do head -c $((i * 9000)) /dev/urandom > f$i; done &&
    [ ${round} -lt 2 ] || { mv ../${round - 1}/f1 moved; rm ../${round - 1}/f2; }; ln -s f3 link; ${end}`;
}

const DIGEST = 'cd /tree && find . | sort | sha256sum && find . -type f | sort | xargs sha256sum | sha256sum';

for (const end of ['sync', 'true'] as const) {
  test(`${ROUNDS} rounds of pause and resume keep a growing tree and a counting process (${end === 'sync' ? 'with' : 'without'} fsync)`, async () => {
    const sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
    try {
      await sandbox.commands.run('n=0; while :; do n=$((n+1)); echo $n > /dev/shm/n; sleep 0.02; done', {
        background: true,
        timeoutMs: 0,
      });
      let counted = 0;
      for (let round = 1; round <= ROUNDS; round += 1) {
        await run(sandbox, growth(round, end));
        const before = await run(sandbox, DIGEST);
        const count = Number(await run(sandbox, 'cat /dev/shm/n'));
        assert.ok(count > counted, `the process does not go on: ${count} after ${counted}`);
        await Sandbox.pause(sandbox.sandboxId, connection);
        await Sandbox.connect(sandbox.sandboxId, connection);
        assert.equal(await run(sandbox, DIGEST), before, `round ${round}`);
        counted = Number(await run(sandbox, 'cat /dev/shm/n'));
        assert.ok(counted >= count, `the memory is older than the pause: ${counted} after ${count}`);
      }
    } finally {
      await Sandbox.kill(sandbox.sandboxId, connection);
    }
  });
}

test('a pause for which the disk has no room fails with that reason, and the sandbox goes on', async () => {
  const directory = join(world.server.home, 'sandboxes');
  const mount = (options: string) => execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', directory]);
  mount('size=1m,mode=711');
  try {
    const sandbox = await Sandbox.create('debian', { ...connection, timeoutMs: 600_000 });
    await run(sandbox, 'echo kept > /dev/shm/kept');
    const { status, body } = await world.server.call('POST', `/sandboxes/${sandbox.sandboxId}/pause`);
    assert.deepEqual([status, (body as { error_code: string }).error_code], [507, 'disk_full']);
    assert.equal(await run(sandbox, 'cat /dev/shm/kept'), 'kept');
    mount('remount,size=200m');
    await Sandbox.pause(sandbox.sandboxId, connection);
    await Sandbox.connect(sandbox.sandboxId, connection);
    assert.equal(await run(sandbox, 'cat /dev/shm/kept'), 'kept');
    await Sandbox.kill(sandbox.sandboxId, connection);
  } finally {
    execFileSync('umount', [directory]);
  }
});
