/** Counts operations and the time they took. */
import type { EngineStats } from './engine.ts';

export class OperationStats {
  readonly #operations: EngineStats['operations'] = {};

  async measure<T>(name: string, work: () => Promise<T>): Promise<T> {
    const counts = this.#operations[name] ?? { succeeded: 0, failed: 0, seconds: 0 };
    this.#operations[name] = counts;
    const start = performance.now();
    try {
      const result = await work();
      counts.succeeded += 1;
      return result;
    } catch (error) {
      counts.failed += 1;
      throw error;
    } finally {
      counts.seconds += (performance.now() - start) / 1000;
    }
  }

  snapshot(): EngineStats['operations'] {
    return structuredClone(this.#operations);
  }
}
