/** Finds credentials in variables: of the environment, and of `.env` files. */

import { PROGRAM } from '../program-name.ts';
import type { Finding, Place } from './finding.ts';
import { LIKE_A_CREDENTIAL, type Recognised, recognise } from './key-forms.ts';

/** Describes a variable's content for a person: `a key of GitHub`, or a description that already begins with an article. */
export const named = ({ platform }: Recognised): string => (/^an? /.test(platform) ? platform : `a key of ${platform}`);

/** Variables without which other programs fail: proxies, and the numbered settings of git, of which none may be absent. */
const NEEDED = /_proxy$|^GIT_CONFIG_(?:KEY|VALUE)_\d+$/i;

/** Whether `agent-broker run --strict` leaves a variable out: its name or its value is that of a credential. */
export const isCredential = (name: string, value: string): boolean =>
  !NEEDED.test(name) && (LIKE_A_CREDENTIAL.test(name) || recognise(name, value) !== undefined);

const adviceFor = (name: string, { add }: Recognised): string => {
  if (NEEDED.test(name))
    return `Start the command without it, or without the credential in it: ${PROGRAM} run keeps it.`;
  return add === undefined
    ? `Start the command without it: ${PROGRAM} run --strict leaves it out. A platform of your own is connected in governance.yaml.`
    : `Connect it with "${PROGRAM} add ${add}"; ${PROGRAM} run then puts a placeholder in its place, and --strict leaves it out.`;
};

/** Searches the environment. Values that `agent-broker run` itself has set are worthless elsewhere, and left out. */
export function findVariables({ env }: Place): Finding[] {
  const placeholder = env.AGENT_BROKER_RUN_KEY;
  return Object.entries(env).flatMap(([name, value = '']) => {
    if (placeholder !== undefined && value.includes(placeholder)) return [];
    // The broker's own variables, which `run` does not pass on.
    if (name.startsWith('AGENT_BROKER_')) return [];
    const found = recognise(name, value);
    return found
      ? [{ kind: 'variable' as const, where: name, what: named(found), advice: adviceFor(name, found) }]
      : [];
  });
}

const LINE = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/;

/** Lists the credentials in a file of variables, by name and kind; undefined when there are none. */
export function variablesIn(text: string): string | undefined {
  const found = text.split('\n').flatMap((line) => {
    const [, name, quoted = ''] = LINE.exec(line) ?? [];
    if (name === undefined) return [];
    const value = quoted.replace(/^(['"])(.*)\1.*$/, '$2');
    const one = recognise(name, value);
    return one ? [`${name} (${one.platform})`] : [];
  });
  return found.length === 0 ? undefined : found.join(', ');
}
