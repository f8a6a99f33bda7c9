/** The snapshots of the fake engine: records only. */
import type { ForkResult, NewSnapshot, SnapshotFilter, SnapshotView } from '@aenv/orchestrator';
import { AenvError, newTemplateId } from '@aenv/std';
import type { FakeSandboxes } from './fake-sandboxes.ts';

export class FakeSnapshots {
  readonly views: SnapshotView[] = [];
  readonly #sandboxes: FakeSandboxes;

  constructor(sandboxes: FakeSandboxes) {
    this.#sandboxes = sandboxes;
  }

  create(sandboxId: string, { name, memory = true }: NewSnapshot = {}): SnapshotView {
    const { cpuCount, memoryMb, diskSizeMb } = this.#running(sandboxId);
    const templateId = newTemplateId();
    const full = name === undefined || name.includes(':') ? name : `${name}:default`;
    const view: SnapshotView = {
      id: full ?? `${templateId}:default`,
      names: full === undefined ? [] : [full],
      templateId,
      sandboxId,
      state: 'ready',
      durable: true,
      memory,
      createdAt: this.#sandboxes.clock.now(),
      cpuCount,
      memoryMb,
      diskSizeMb,
    };
    this.views.unshift(view);
    return view;
  }

  list({ sandboxId, name, states = ['ready'] }: SnapshotFilter): SnapshotView[] {
    return this.views
      .filter((view) => sandboxId === undefined || view.sandboxId === sandboxId)
      .filter((view) => name === undefined || view.id.split(':')[0] === name.split(':')[0])
      .filter(({ state }) => states.includes(state));
  }

  fork(sandboxId: string, count: number, timeoutSeconds: number): ForkResult[] {
    const { templateId, cpuCount, memoryMb, diskSizeMb, ...settings } = this.#running(sandboxId);
    return Array.from({ length: count }, () => ({
      sandbox: this.#sandboxes.start(
        { ...settings, timeoutSeconds, secure: settings.envdAccessToken !== undefined, envVars: {}, pauseMemory: true },
        { id: templateId, cpuCount, memoryMb, diskSizeMb },
      ),
    }));
  }

  rollback(sandboxId: string, snapshot: string) {
    const view = this.#running(sandboxId);
    if (this.views.some(({ id }) => id === snapshot)) return view;
    throw new AenvError('template_not_found', `There is no snapshot ${snapshot}.`);
  }

  #running(sandboxId: string) {
    const view = this.#sandboxes.get(sandboxId);
    if (view.state !== 'running') throw new AenvError('sandbox_paused', `Sandbox ${sandboxId} is paused.`);
    return view;
  }
}
