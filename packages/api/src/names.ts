/** Ids and names as clients write them, in the one form that the engine knows. */

/** Older SDKs append the client's id (`i123-6532622b`); the sandbox is the part before the dash. */
export function sandboxId(given: string): string {
  return given.split('-', 1)[0] ?? given;
}

/** Template names are case-insensitive. The contract has checked the characters. */
export function templateName(given: string): string {
  return given.trim().toLowerCase();
}
