import { existsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** Returns a sentence that the folder of a file that is to be written does not exist; undefined when it does. */
export function missingFolder(file: string): string | undefined {
  const folder = dirname(file);
  if (existsSync(folder) && statSync(folder).isDirectory()) return undefined;
  return `There is no folder ${folder}. Create it, or name a file in another one.`;
}
