/** The smallest static programs that Linux runs: one header, one segment, machine code. They serve as /init of test guests. */

const LOAD_ADDRESS = 0x400000n;
const ELF_HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;

/** An ELF file for x86-64 whose one segment, readable, writable and executable, is `code`; it starts at its first byte. */
export function tinyProgram(code: Uint8Array): Buffer {
  const start = ELF_HEADER_BYTES + PROGRAM_HEADER_BYTES;
  const headers = Buffer.alloc(start);
  headers.write('\x7fELF', 'latin1');
  // 64 bit, little endian, version 1.
  headers.set([2, 1, 1], 4);
  headers.writeUInt16LE(2, 16); // executable
  headers.writeUInt16LE(62, 18); // x86-64
  headers.writeUInt32LE(1, 20);
  headers.writeBigUInt64LE(LOAD_ADDRESS + BigInt(start), 24); // entry
  headers.writeBigUInt64LE(BigInt(ELF_HEADER_BYTES), 32); // program headers
  headers.writeUInt16LE(ELF_HEADER_BYTES, 52);
  headers.writeUInt16LE(PROGRAM_HEADER_BYTES, 54);
  headers.writeUInt16LE(1, 56);
  const segment = headers.subarray(ELF_HEADER_BYTES);
  const length = BigInt(start + code.length);
  segment.writeUInt32LE(1, 0); // load
  segment.writeUInt32LE(7, 4); // rwx
  segment.writeBigUInt64LE(LOAD_ADDRESS, 16);
  segment.writeBigUInt64LE(LOAD_ADDRESS, 24);
  segment.writeBigUInt64LE(length, 32);
  segment.writeBigUInt64LE(length, 40);
  segment.writeBigUInt64LE(0x1000n, 48);
  return Buffer.concat([headers, code]);
}

/** What `aliveProgram` prints. */
export const ALIVE_TEXT = 'aenv-probe-alive\n';

/** Prints ALIVE_TEXT and powers the machine off. */
export const aliveProgram = (): Buffer =>
  tinyProgram(
    Buffer.concat([
      code(`
        b801000000     ; mov eax, 1            write
        bf01000000     ; mov edi, 1
        488d351e000000 ; lea rsi, [rip+0x1e]   the text
        ba11000000     ; mov edx, 17
        0f05           ; syscall
        b8a9000000     ; mov eax, 169          reboot
        bfaddee1fe     ; mov edi, 0xfee1dead
        be69191228     ; mov esi, 0x28121969
        badcfe2143     ; mov edx, 0x4321fedc   power off
        0f05           ; syscall
        f4             ; hlt`),
      Buffer.from(ALIVE_TEXT),
    ]),
  );

/** The bytes of a listing: hexadecimal digits, then `;` and a comment on each line. */
export function code(listing: string): Buffer {
  return Buffer.from(listing.replaceAll(/;.*$/gm, '').replaceAll(/\s/g, ''), 'hex');
}
