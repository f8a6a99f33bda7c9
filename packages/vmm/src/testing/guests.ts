/** Guests for tests, each a single program of machine code. */
import { code, tinyProgram } from '../tiny-program.ts';

/** Counts in its memory and prints `count NNNNNNNNNN` every 20 ms. */
export const countingProgram = (): Buffer =>
  tinyProgram(
    Buffer.concat([
      code(`
        488d1d39000000 ;        lea rbx, [rip+0x39]  the text
        488d7b0f       ; again: lea rdi, [rbx+15]    its last digit
        fe07           ; digit: inc byte [rdi]
        803f3a         ;        cmp byte [rdi], '9'+1
        7508           ;        jne print
        c60730         ;        mov byte [rdi], '0'
        48ffcf         ;        dec rdi
        ebf1           ;        jmp digit
        b801000000     ; print: mov eax, 1           write
        bf01000000     ;        mov edi, 1
        4889de         ;        mov rsi, rbx
        ba11000000     ;        mov edx, 17
        0f05           ;        syscall
        b823000000     ;        mov eax, 35          nanosleep
        488d3d17000000 ;        lea rdi, [rip+0x17]  the pause
        31f6           ;        xor esi, esi
        0f05           ;        syscall
        ebc7           ;        jmp again`),
      Buffer.from('count 0000000000\n'),
      // Seconds and nanoseconds.
      code('0000000000000000 002d310100000000'),
    ]),
  );

/** Ends at once, which makes the kernel panic when it is /init. */
export const endingProgram = (): Buffer =>
  tinyProgram(
    code(`
      b83c000000 ; mov eax, 60  exit
      31ff       ; xor edi, edi
      0f05       ; syscall`),
  );
