/** Who needs which disk layer. A layer that nobody holds can go. */
import type { DatabaseSync } from 'node:sqlite';

export class LayerTable {
  readonly #database: DatabaseSync;

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  hold(holder: string, layers: readonly string[]): void {
    const insert = this.#database.prepare('INSERT OR IGNORE INTO layers (layer, holder) VALUES (?, ?)');
    for (const layer of layers) insert.run(layer, holder);
  }

  /** In the order in which it came to need them: those of one disk, bottom first. */
  of(holder: string): string[] {
    const rows = this.#database.prepare('SELECT layer FROM layers WHERE holder = ? ORDER BY rowid').all(holder);
    return rows.map((row) => row.layer as string);
  }

  /** Every layer that somebody needs. */
  all(): Set<string> {
    const rows = this.#database.prepare('SELECT DISTINCT layer FROM layers').all();
    return new Set(rows.map((row) => row.layer as string));
  }

  holders(): string[] {
    const rows = this.#database.prepare('SELECT DISTINCT holder FROM layers').all();
    return rows.map((row) => row.holder as string);
  }

  /** Those of `layers` that nobody but `holder` needs. */
  onlyOf(holder: string, layers = this.of(holder)): string[] {
    const other = this.#database.prepare('SELECT 1 FROM layers WHERE layer = ? AND holder != ? LIMIT 1');
    return layers.filter((layer) => other.get(layer, holder) === undefined);
  }

  /** Those of `layers` that nobody needs. */
  unheld(layers: readonly string[]): string[] {
    const held = this.#database.prepare('SELECT 1 FROM layers WHERE layer = ? LIMIT 1');
    return layers.filter((layer) => held.get(layer) === undefined);
  }

  release(holder: string, layers = this.of(holder)): void {
    const remove = this.#database.prepare('DELETE FROM layers WHERE layer = ? AND holder = ?');
    for (const layer of layers) remove.run(layer, holder);
  }

  /** Forgets holders that do not exist any more. Returns the layers that are still held. */
  keep(holders: ReadonlySet<string>): Set<string> {
    const rows = this.#database.prepare('SELECT layer, holder FROM layers').all() as {
      layer: string;
      holder: string;
    }[];
    for (const { layer, holder } of rows) if (!holders.has(holder)) this.release(holder, [layer]);
    return new Set(rows.filter(({ holder }) => holders.has(holder)).map(({ layer }) => layer));
  }
}
