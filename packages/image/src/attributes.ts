/**
 * Extended attributes that `mke2fs -d -` leaves out: of a tar stream it keeps `security.capability` alone. The others are
 * set afterwards by debugfs, which needs neither a mount nor privileges.
 */
import { AenvError } from '@aenv/std';
import type { ToolRunner } from './ext4.ts';
import { shownName } from './tar/entry.ts';

/** Attributes by the path of the file in the disk (one character per byte). */
export type AttributeList = readonly { path: string; xattrs: ReadonlyMap<string, string> }[];

const KEPT_BY_MKE2FS = 'security.capability';
/** debugfs reads its commands into a buffer of 8 KiB. */
const MAX_LINE = 8000;

/** Sets what is missing on the file system in `disk`. */
export async function setAttributes(
  disk: string,
  files: AttributeList,
  runTool: ToolRunner,
  run: { env: Record<string, string>; signal?: AbortSignal },
): Promise<void> {
  const lines = [...commands(files)];
  if (lines.length === 0) return;
  const { code, stderr } = await runTool('debugfs', ['-w', '-f', '-', disk], { stdin: inChunks(lines), ...run });
  // debugfs goes on after a failed command and ends with 0; all that it says besides its version is a failure.
  const complaints = stderr.split('\n').filter((line) => line !== '' && !/^debugfs [\d.]+ \(/.test(line));
  if (code === 0 && complaints.length === 0) return;
  throw new AenvError('image_invalid', `extended attributes of the image cannot be kept: ${complaints[0] ?? code}`, {
    remedy: 'Build the image without these attributes.',
  });
}

async function* inChunks(lines: string[]): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < lines.length; at += 256) yield Buffer.from(lines.slice(at, at + 256).join(''), 'latin1');
}

function* commands(files: AttributeList): Generator<string> {
  for (const { path, xattrs } of files) {
    for (const [name, value] of xattrs) {
      if (name === KEPT_BY_MKE2FS) continue;
      const line = `ea_set ${quoted(`/${path}`)} ${quoted(name)} ${quoted(escaped(value))}\n`;
      const isLegal = /^[a-z]+\.[\x21-\x7e]+$/.test(name) && !/[\n\r\0]/.test(path) && line.length <= MAX_LINE;
      if (!isLegal) throw tooOdd(path, name);
      yield line;
    }
  }
}

/** A word for debugfs: in quotes, where two quotes stand for one. */
function quoted(word: string): string {
  return `"${word.replaceAll('"', '""')}"`;
}

/** debugfs takes values with the escapes of C. */
function escaped(value: string): string {
  return value.replace(/[^A-Za-z0-9 ._:=/-]/g, (character) => {
    const code = character.charCodeAt(0);
    return `\\${code.toString(8).padStart(3, '0')}`;
  });
}

function tooOdd(path: string, name: string): AenvError {
  return new AenvError(
    'image_invalid',
    `the extended attribute ${shownName(name).slice(0, 100)} of ${shownName(path)} cannot be kept`,
    { remedy: 'Build the image without this attribute.' },
  );
}
