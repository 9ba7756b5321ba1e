/** The clients of platforms, where they are installed: they are none of the project's own dependencies. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../world/checkout.ts';

/** Reads a package of the lab, as its users do. What it exports has no type here: a checkout without the lab is checked, too. */
export const load = createRequire(join(import.meta.dirname, 'package.json'));

/** Why the lab cannot run; undefined: it can. */
export const withoutLab = existsSync(join(import.meta.dirname, 'node_modules'))
  ? undefined
  : 'the clients of platforms are not installed: npm run lab:clients';
if (withoutLab && process.env.CI) throw new Error(withoutLab);

/** The address of the broker that the page has. */
const WRITTEN = 'http://localhost:8787';

/** The line of a client in the table of docs/unmodified.md, with the address of this broker. */
export function lineOf(client: string, baseUrl: string): string {
  const page = readFileSync(join(ROOT, 'docs/unmodified.md'), 'utf8');
  // The tables of other sections have rows of the same name, without the address of a connection.
  const row = page.split('\n').find((line) => line.includes(WRITTEN) && line.startsWith(`| \`${client}\` |`));
  const line = row && /^\| `[^`]+` \| `([^`]+)` \|/.exec(row)?.[1];
  if (!line?.includes(WRITTEN)) throw new Error(`docs/unmodified.md has no line for ${client}`);
  return line.replaceAll(WRITTEN, baseUrl);
}
