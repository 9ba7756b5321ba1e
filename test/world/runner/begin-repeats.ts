/** A process that begins the calls c0 to c<n> in a folder of repeats when it reads a line, and prints the keys that it was given. */
import { once } from 'node:events';
import { repeatsOnDisk } from '../../../mcp/stdio/repeats-on-disk.ts';

const [, , folder, many] = process.argv as [string, string, string, string];
const repeats = repeatsOnDisk(folder);
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const keys: string[] = [];
for (let n = 0; n < Number(many); n++) keys.push((await repeats.begin(`c${n}`, undefined)).key);
process.stdout.write(`${JSON.stringify(keys)}\n`);
process.exit();
