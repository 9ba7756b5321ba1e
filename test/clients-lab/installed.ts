/** The platforms' npm clients, if they are installed: they are not dependencies of the project itself. */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ROOT } from '../world/checkout.ts';

/** Loads a package of the lab, as its users do. Its exports are untyped here, because a checkout without the lab is type-checked, too. */
export const load = createRequire(join(import.meta.dirname, 'package.json'));

/** Why the lab cannot run; undefined when it can. */
export const withoutLab = existsSync(join(import.meta.dirname, 'node_modules'))
  ? undefined
  : 'the clients of platforms are not installed: npm run lab:clients';
if (withoutLab && process.env.CI) throw new Error(withoutLab);

/** The broker's URL in the page. */
const WRITTEN = 'http://localhost:8787';

/** Returns the line of a client in the table of docs/unmodified.md, with the URL of this broker. */
export function lineOf(client: string, baseUrl: string): string {
  const page = readFileSync(join(ROOT, 'docs/unmodified.md'), 'utf8');
  // Tables of other sections have rows with the same name, without the URL of a connection.
  const row = page.split('\n').find((line) => line.includes(WRITTEN) && line.startsWith(`| \`${client}\` |`));
  const line = row && /^\| `[^`]+` \| `([^`]+)` \|/.exec(row)?.[1];
  if (!line?.includes(WRITTEN)) throw new Error(`docs/unmodified.md has no line for ${client}`);
  return line.replaceAll(WRITTEN, baseUrl);
}
